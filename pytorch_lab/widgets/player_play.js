// Moving along the timeline: by a step, to a place, or playing at a speed.

/** Adds `go`, `step`, `toggle` and `stop` to a view; `keys` is its transport. */
function playable(view, keys) {
  const { total, films } = view;
  let frame_ = 0;
  let carry = 0;
  let started = false;

  Object.assign(view, {
    go(place, { pause = false, follow = true } = {}) {
      if (pause) stop();
      const to = Math.max(0, Math.min(total, place));
      if (to !== view.place && view.chosen) view.unchoose();
      view.place = to;
      started = true;
      view.draw({ follow });
    },
    step(by) {
      view.go(view.place + by, { pause: true });
      view.say(sayStep(films[view.leader()], view.atOf(view.leader())));
    },
    toggle() {
      if (view.playing) {
        stop();
        return;
      }
      if (!started || view.place >= total) view.place = 0;
      started = true;
      view.playing = true;
      keys.playing(true);
      if (view.chosen) view.unchoose();
      let before = performance.now();
      carry = 1;
      const rate = Math.max(1.5, Math.min(60, total / 25));
      const tick = (now) => {
        if (!view.playing) return;
        carry += ((now - before) / 1000) * rate * view.speed;
        before = now;
        const steps = Math.floor(carry);
        if (steps) {
          carry -= steps;
          view.place = Math.min(total, view.place + steps);
          view.draw({ follow: true });
          if (view.place >= total) {
            stop();
            return;
          }
        }
        frame_ = requestAnimationFrame(tick);
      };
      frame_ = requestAnimationFrame(tick);
    },
    stop,
  });

  function stop() {
    if (!view.playing) return;
    view.playing = false;
    cancelAnimationFrame(frame_);
    keys.playing(false);
  }
}
