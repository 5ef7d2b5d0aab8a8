// Lesson 5: noisy answers and their nearest points in K, the key inequality, error by records.
(() => {
  const { plane } = Lesson, K = [[0, 0], [1, 0], [1, 1]];
  const truth = (s) => [s.smokes, Math.min(s.smokes, s.both)];
  const noise = (s) => plane.direction(s.noise_angle).map((x) => s.noise_length * x);
  const place = { kind: "truth", name: "true answers", at: truth, to: (s, [x, y]) => { Lesson.set("smokes", x); Lesson.set("both", Math.min(x, y)); } };
  const rms = (points, at) => Math.sqrt(points.reduce((sum, p) => sum + plane.dot(plane.sub(p, at), plane.sub(p, at)), 0) / (2 * points.length));
  const base = (s, [p]) => {
    p.axes({ x: [-1.5, 3], y: [-1.6, 2.9], equal: true, xlabel: "q₁: smokes", ylabel: "q₂: smokes and is ill" });
    p.poly(K, "K", { label: "K" });
    p.arrow(truth(s), plane.add(truth(s), noise(s)), "Z", { label: "Z" });
    p.dots([truth(s)], "truth", { label: "true answers y" });
  };

  Lesson.pictures([
    {
      handles: () => [place, { kind: "Z", name: "size of the noise", at: (s) => [truth(s)[0] + s.spread, truth(s)[1]], to: (s, [x]) => Lesson.set("spread", Math.max(0.01, x - truth(s)[0])), keys: (s, step) => Lesson.step("spread", step) }],
      draw(s, [p], d) {
        const y = truth(s), half = Math.max(1, 2.2 * s.spread), noisy = d.gaussians.map((g) => plane.add(y, [s.spread * g[0], s.spread * g[1]]));
        p.axes({ x: [0.5 - half, 0.8 + half], y: [0.35 - half, 0.65 + half], equal: true, xlabel: "q₁: smokes", ylabel: "q₂: smokes and is ill" });
        p.poly(K, "K", { label: "K" });
        const near = noisy.map((point) => plane.nearest(K, point));
        noisy.forEach((point, i) => p.line([point, near[i]], "grey", { width: 0.8 }));
        p.dots(noisy, "Z", { r: 3, label: "noisy" });
        p.dots(near, "after", { r: 3, label: "nearest in K" });
        p.line(plane.disc(s.spread, y), "Z", { dash: true, width: 1 });
        return `rmse before ${rms(noisy, y).toFixed(3)}, after ${rms(near, y).toFixed(3)}`;
      },
    },
    {
      panels: 2,
      predict: {
        ask: "Noise moves the true answers along the arrow. Drag the ring to the point of K that you would publish instead.",
        at: [-0.5, -0.5], base, truth: (s) => plane.nearest(K, plane.add(truth(s), noise(s))),
      },
      handles: () => [place, { kind: "Z", name: "noisy answers", at: (s) => plane.add(truth(s), noise(s)), to: (s, p) => {
        const z = plane.sub(p, truth(s));
        Lesson.set("noise_length", Math.hypot(...z));
        Lesson.set("noise_angle", plane.degrees(z));
      } }],
      draw(s, [p, q]) {
        const y = truth(s), z = noise(s), noisy = plane.add(y, z), near = plane.nearest(K, noisy), e = plane.sub(near, y);
        base(s, [p]);
        p.line([noisy, near], "grey", { width: 1 });
        if (Math.hypot(...plane.sub(noisy, near)) > 1e-9) p.hyperplane(plane.sub(noisy, near), plane.dot(plane.sub(noisy, near), near), "h", { label: "line that separates", dash: true });
        p.arrow(y, near, "after", { label: "error e" });
        p.dots([near], "after", { r: 6 });
        const rows = [["‖e‖²", plane.dot(e, e), "after"], ["⟨Z, e⟩", plane.dot(z, e), "Z"], ["h(Z) − ⟨Z, y⟩", plane.support(K, z) - plane.dot(z, y), "h"], ["‖Z‖²", plane.dot(z, z), "grey"]];
        q.axes({ x: [0, 4.8], y: [-0.6, 3.6], yticks: [] });
        rows.forEach(([name, value, kind], i) => {
          q.bars([[0, value, 2.6 - i, 3.1 - i]], kind);
          q.text([0.06, 3.18 - i], `${name} = ${value.toFixed(3)}`);
        });
        return `${rows[0][1].toFixed(3)} is at most ${rows[1][1].toFixed(3)} and ${rows[2][1].toFixed(3)}`.replace(/-0\.000/g, "0.000");
      },
    },
    {
      handles: (s, d) => [{ kind: "after", name: "number of records", at: () => [s.count, d.measured[Lesson.place("count")]], to: (_, [x]) => Lesson.set("count", x), keys: (_, step) => Lesson.step("count", step) }],
      draw(s, [p], d) {
        const ns = Array.from({ length: 60 }, (_, i) => 2 * 2500 ** (i / 59));
        p.axes({ x: [2, 5000], y: [1e-3, 20], logx: true, logy: true, xlabel: "records n", ylabel: "error per query (rmse)" });
        p.line(ns.map((n) => [n, d.sigma / n]), "Z", { label: "noise σ" });
        p.line(ns.map((n) => [n, Math.sqrt(((d.sigma / n) * d.width) / 64)]), "w", { label: "theory √(σ w(K)/m)", dash: true });
        p.curve(d.sizes.map((n, i) => [n, d.measured[i]]), "after", { label: "measured after projection" });
        return `n = ${s.count}: from ${(d.sigma / s.count).toFixed(3)} to ${d.measured[Lesson.place("count")].toFixed(3)}`;
      },
    },
  ]);
})();
