"""Drawing: a record becomes boxes in frames, a layout in layers, and a still picture."""
