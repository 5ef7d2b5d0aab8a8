// Lesson 7: a packing, its certificate, a line, orthogonal lines.
(() => {
  const { plane, place } = Lesson, square = [[0, 0], [1, 0], [1, 1], [0, 1]];
  const shift = (s) => Math.min(s.copies, s.people) / s.people, radius = (s) => 2 * Math.SQRT2 * s.error;
  const limit = (s) => { const q = Math.exp(-s.line_loss); return (2 * q) / (1 - q) ** 2; };
  const risk = (s, d, t = place("line_steps")) => d.risks[place("line_loss")][t];
  const frame = (s, q) => {
    q.axes({ x: [0, 33], y: [0, 1.15 * limit(s)], xlabel: "steps T", ylabel: "squared error of t, at least" });
    q.line([[0, limit(s)], [99, limit(s)]], "Z", { dash: true, label: "discrete Laplace noise" });
  };

  Lesson.pictures([
    {
      handles: () => [
        { kind: "truth", name: "copies r", at: (s) => [shift(s), 0], to: (s, [x]) => Lesson.set("copies", x * s.people), keys: (_, by) => Lesson.step("copies", by) },
        { kind: "Z", name: "error α", at: (s) => [0, -radius(s)], to: (s, [, y]) => Lesson.set("error", Math.abs(y) / (2 * Math.SQRT2)), keys: (s, by) => Lesson.set("error", s.error - 0.01 * by) }],
      draw(s, [p]) {
        const t = shift(s), apart = t / Math.SQRT2, sum = 0.5 + 1.5 * Math.exp(-s.loss * Math.min(s.copies, s.people)), n = s.people;
        p.axes({ x: [-0.9, 1.9], y: [-0.9, 1.9], equal: true, xlabel: "first answer", ylabel: "second answer" });
        p.poly(square, "K", { label: "K" });
        for (const corner of square) p.poly(plane.disc(radius(s), corner.map((x) => t * x)), "Z");
        p.dots(square.map((corner) => corner.map((x) => t * x)), "truth", { label: "answers of 4 data sets" });
        const discs = apart >= 4 * s.error - 1e-12, mass = sum > 1, eps = Number(s.loss.toFixed(4)), error = Number(s.error.toFixed(4));
        return `answers apart: ${apart.toFixed(3)}; needed 4α = ${(4 * s.error).toFixed(3)}: ${discs ? "yes" : "no"}\nmass of the discs at least ${sum.toFixed(3)}; above 1: ${mass ? "yes" : "no"}\n${discs && mass ? `Excluded: no ${eps}-DP mechanism has error ${error} at n = ${n}.` : "This packing excludes nothing."}`;
      },
    },
    {
      panels: 0,
      draw(s, _, d) { return { html: d.tables[0][place("alpha")][place("epsilon")] }; },
    },
    {
      panels: 2,
      predict: {
        ask: "One number t between 0 and 8 is hidden at ε = 1. Drag the ring to the squared error that every private estimate has at least; the dashed line is that of noise.",
        panel: 1, at: [8, 0.4], along: "y", truth: (s) => [s.line_steps, risk(s, Lesson.data)],
        base: (s, [p, q]) => { p.axes({ x: [-1, 9], y: [0, 1], xlabel: "t" }); frame(s, q); },
      },
      handles: (s, d) => [{ panel: 1, kind: "K", name: "steps T", at: () => [s.line_steps, risk(s, d)], to: (_, [x]) => Lesson.set("line_steps", x), keys: (_, by) => Lesson.step("line_steps", by) }],
      draw(s, [p, q], d) {
        const prior = d.priors[place("line_loss")][place("line_steps")];
        p.axes({ x: [-0.6, s.line_steps + 0.6], y: [0, 1.15 * Math.max(...prior)], xlabel: "t", ylabel: "prior of the proof" });
        p.bars(prior.map((y, t) => [t - 0.5, t + 0.5, 0, y]), "K");
        frame(s, q);
        q.curve(d.steps.map((t, i) => [t, risk(s, d, i)]), "K", { label: "proved" });
        return `With T = ${s.line_steps} and ε = ${s.line_loss} no private estimate of t has a mean squared error below ${risk(s, d).toFixed(4)}; discrete Laplace noise has ${limit(s).toFixed(4)}.`;
      },
    },
    {
      handles: () => [{ kind: "Z", name: "steps T", at: (s) => [s.grid_steps / s.grid_records, s.grid_steps / s.grid_records], to: (s, [x]) => Lesson.set("grid_steps", x * s.grid_records), keys: (_, by) => Lesson.step("grid_steps", by) },
        { track: "grid_records", kind: "grey", name: "records n" }],
      draw(s, [p], d) {
        const t = s.grid_steps, n = s.grid_records, fits = 2 * t <= n;
        p.axes({ x: [-0.25, 1.45], y: [-0.25, 1.15], equal: true, xlabel: "first answer", ylabel: "second answer" });
        p.poly(square, "K", { label: "K" });
        p.dots(Array.from({ length: (t + 1) ** 2 }, (_, i) => [(i % (t + 1)) / n, Math.floor(i / (t + 1)) / n]), fits ? "Z" : "grey", { r: 2.5, label: "answers of data sets" });
        return fits ? `At ε = 1 no mechanism has a root mean square error per query below ${(Math.sqrt(d.risks[d.one][d.steps.indexOf(t)]) / n).toFixed(4)} on all these data sets.` : `Two lines of ${t} steps need 2T = ${2 * t} records: more than n.`;
      },
    },
  ]);
})();
