// Lesson 6: distances under a random map, one row, rows against noise, three regimes, measured errors.
(() => {
  const { plane, place } = Lesson, truth = [0.75, 0.55];
  const pentagon = [[0, 0.1], [0.9, 0], [1.1, 0.5], [0.6, 0.95], [0.05, 0.7]], row = (s) => plane.direction(s.angle);
  const range = (low, high, n = 60) => Array.from({ length: n + 1 }, (_, i) => low * (high / low) ** (i / n));
  const bracket = (p) => p.axes({ x: [1, 2000], y: [3e-3, 20], logx: true, logy: true, xlabel: "rows m", ylabel: "the bracket" });
  const two = (p, s) => {
    p.line(range(1, 2000).map((m) => [m, 1 / Math.sqrt(m)]), "K", { label: "distortion 1/√m" });
    p.line(range(1, 2000).map((m) => [m, Math.sqrt(m) / s.records]), "Z", { label: "noise √m/(εn)" });
  };

  Lesson.pictures([
    {
      panels: 2,
      handles: () => [{ track: "seed", kind: "grey", name: "draw of A" }, { track: "rows", panel: 1, kind: "K", name: "rows m" }],
      draw(s, [p, q], d) {
        const { outline, corners } = d.shadows[s.seed], reach = 1.15 * Math.max(...corners.flat().map(Math.abs)), after = d.after[s.seed][place("rows")];
        p.axes({ x: [-reach, reach], y: [-reach, reach], equal: true, title: "a shadow of K" });
        p.poly(outline, "K", { label: "K" });
        p.dots(corners, "truth", { r: 2 });
        q.axes({ x: [0, 30], y: [0, 45], xlabel: "‖x − y‖", ylabel: "‖A(x − y)‖", title: "distances between corners" });
        q.line([[0, 0], [30, 30]], "grey", { label: "distance kept" });
        q.dots(d.lengths.map((x, i) => [x, after.images[i]]), "K", { r: 1.5 });
        return `Largest change between corners: ${after.worst.toFixed(3)}. Bound on its mean over maps: ${((6.5 * d.width) / Math.sqrt(s.rows)).toFixed(3)}, with w(K) = ${d.width.toFixed(3)}`;
      },
    },
    {
      handles: () => [
        { kind: "truth", name: "angle of the row", at: (s) => plane.add(truth, row(s).map((x) => -0.45 * x)), to: (s, p) => Lesson.set("angle", plane.degrees(plane.sub(truth, p)) % 180), keys: (s, by) => Lesson.set("angle", s.angle + 5 * by) },
        { kind: "Z", name: "noise", at: (s) => plane.add(truth, row(s).map((x) => s.noise * x)), to: (s, p) => Lesson.set("noise", plane.dot(row(s), plane.sub(p, truth))), keys: (s, by) => Lesson.set("noise", s.noise + 0.05 * by) }],
      draw(s, [p]) {
        const a = row(s), images = pentagon.map((v) => plane.dot(a, v)), measured = plane.dot(a, truth) + s.noise;
        const near = Lesson.clamp(measured, Math.min(...images), Math.max(...images)), points = plane.cut(pentagon, a, near);
        p.axes({ x: [-0.6, 1.7], y: [-0.6, 1.6], equal: true, xlabel: "first answer", ylabel: "second answer" });
        p.poly(pentagon, "K", { label: "K" });
        p.hyperplane(a, measured, "Z", { label: "⟨a, y⟩ = measured", dash: true });
        p.line(points, "after", { width: 5, label: "all nearest points" });
        p.dots(points, "after");
        p.dots([truth], "truth", { label: "true answers" });
        p.arrow(plane.add(truth, a.map((x) => -0.45 * x)), plane.add(truth, a.map((x) => -0.2 * x)), "truth", { label: "row a" });
        const far = Math.max(...points.map((q) => Math.hypot(...plane.sub(q, truth))));
        return `error of the measured number after the fit: ${Math.abs(near - plane.dot(a, truth)).toFixed(3)}\nerror of the answers, at worst: ${far.toFixed(3)}`;
      },
    },
    {
      predict: {
        ask: "Few rows distort, many rows are noisy. Drag the ring to the number of rows at which the sum of the two curves is least.",
        at: [10, 0.6], along: "x", ratio: true, base: (s, [p]) => { bracket(p); two(p, s); }, truth: (s) => [s.records, 0.6],
      },
      handles: () => [{ kind: "truth", name: "εn", at: (s) => [s.records, 2 / Math.sqrt(s.records)], to: (_, [x]) => Lesson.set("records", x), keys: (_, by) => Lesson.step("records", by) }],
      draw(s, [p]) {
        bracket(p);
        two(p, s);
        p.line(range(1, 2000).map((m) => [m, 1 / Math.sqrt(m) + Math.sqrt(m) / s.records]), "truth", { width: 3, label: "sum" });
        return `least at m = ${s.records}: ${(2 / Math.sqrt(s.records)).toFixed(3)}`;
      },
    },
    Lesson.threeBounds({
      bits: "bits", alpha: "alpha", names: ["ball", "K-norm", "JL"],
      axes: { y: [1, 1e7], xlabel: "queries k", ylabel: "records, up to the constant" },
      said: (L, a, terms) => `k = 1000: ${terms.map((f, i) => `${["ball", "K-norm", "JL"][i]} ${f(1000).toFixed(0)}`).join(", ")}`,
    }),
    {
      handles: () => [{ track: "people", kind: "grey", name: "records n" }],
      draw(s, [p], d) {
        const [alone, projected, behind] = d.measured[place("people")], rule = (y, kind, label) => p.line([[1, y], [99, y]], kind, { dash: true, label });
        p.axes({ x: [1.8, 70], y: [0.08, 5], logx: true, logy: true, xlabel: "rows m", ylabel: "error per query", xticks: d.tried.map((m) => [m, m]) });
        rule(alone, "Z", "noise alone");
        rule(projected, "after", "projected");
        rule(d.zero[place("people")], "grey", "answer 0 always");
        p.curve(d.tried.map((m, i) => [m, behind[i]]), "K", { label: "with a map" });
        return `noise ${alone.toFixed(3)}, projected ${projected.toFixed(3)}, best map ${Math.min(...behind).toFixed(3)}`;
      },
    },
  ]);
})();
