// The picture as a file: what the painting asks of a canvas, written down as SVG.

const escapeXml = (text) => text.replace(/[&<>"]/g, (sign) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[sign]);
const short = (number) => String(Math.round(number * 10) / 10);

/** What a canvas context is asked here, written down as SVG: presentation attributes only. */
function svgContext(measure) {
  const parts = [];
  let d = "";
  let dash = "";
  const context = {
    globalAlpha: 1, fillStyle: "", strokeStyle: "", lineWidth: 1, font: "", textAlign: "left", textBaseline: "",
    beginPath: () => { d = ""; },
    moveTo: (x, y) => { d += `M${short(x)} ${short(y)}`; },
    lineTo: (x, y) => { d += `L${short(x)} ${short(y)}`; },
    bezierCurveTo: (...points) => { d += `C${points.map(short).join(" ")}`; },
    closePath: () => { d += "Z"; },
    setLineDash: (lengths) => { dash = lengths.length ? ` stroke-dasharray="${lengths.join(" ")}"` : ""; },
    roundRect(x, y, width, height, r) {
      const [right, low] = [x + width, y + height];
      const n = [x + r, y, right - r, y, right, y, right, y + r, right, low - r, right, low, right - r, low, x + r, low, x, low, x, low - r, x, y + r, x, y, x + r, y].map(short);
      d += `M${n[0]} ${n[1]}L${n[2]} ${n[3]}Q${n.slice(4, 8).join(" ")}L${n[8]} ${n[9]}Q${n.slice(10, 14).join(" ")}` +
        `L${n[14]} ${n[15]}Q${n.slice(16, 20).join(" ")}L${n[20]} ${n[21]}Q${n.slice(22, 26).join(" ")}Z`;
    },
    fill: () => put("path", `d="${d}" fill="${context.fillStyle}"${alpha("fill-opacity")}`),
    stroke: () => put("path", `d="${d}" fill="none" stroke="${context.strokeStyle}" stroke-width="${short(context.lineWidth)}"${dash}${alpha("stroke-opacity")}`),
    fillRect: (x, y, width, height) => put("rect", `${size(x, y, width, height)} fill="${context.fillStyle}"${alpha("fill-opacity")}`),
    strokeRect: (x, y, width, height) => put("rect", `${size(x, y, width, height)} fill="none" stroke="${context.strokeStyle}" stroke-width="${short(context.lineWidth)}"`),
    fillText(text, x, y) {
      const [, weight, points] = /^(?:(\d+) )?([\d.]+)px/.exec(context.font);
      const anchor = context.textAlign === "center" ? ' text-anchor="middle"' : "";
      parts.push(`<text x="${short(x)}" y="${short(y + (context.textBaseline === "middle" ? Number(points) * 0.34 : 0))}" font-size="${points}" font-family="${escapeXml(CANVAS_MONO)}"` +
        `${weight ? ` font-weight="${weight}"` : ""}${anchor} fill="${context.fillStyle}"${alpha("fill-opacity")}>${escapeXml(text)}</text>`);
    },
    measureText(text) {
      measure.font = context.font;
      return measure.measureText(text);
    },
  };
  const put = (tag, attributes) => parts.push(`<${tag} ${attributes}/>`);
  const alpha = (name) => (context.globalAlpha < 1 ? ` ${name}="${short(context.globalAlpha * 100) / 100}"` : "");
  const size = (x, y, width, height) => `x="${short(x)}" y="${short(y)}" width="${short(width)}" height="${short(height)}"`;
  return { context, parts };
}

/** The whole picture of a pane as SVG text, as it looks at this step with these frames open. */
function svgOf(pane, title) {
  const { layout, boxes } = pane.set;
  const margin = 12;
  const [width, height] = [layout.width + 2 * margin, layout.height + 2 * margin];
  const { context, parts } = svgContext(document.createElement("canvas").getContext("2d"));
  const whole = { ...pane, set: { ...pane.set, moving: false }, x: -margin, y: -margin, width, height, scale: 1, hover: -1 };
  for (const box of boxes) box.fitted = null;
  paintScene(context, whole);
  const box = `${-margin} ${-margin} ${short(width)} ${short(height)}`;
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${short(width)}" height="${short(height)}" viewBox="${box}" role="img">` +
    `<title>${escapeXml(title)}</title><rect x="${-margin}" y="${-margin}" width="${short(width)}" height="${short(height)}" fill="${pane.inks.paper}"/>${parts.join("")}</svg>`;
}
