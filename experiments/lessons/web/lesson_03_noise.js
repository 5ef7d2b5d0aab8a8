// Lesson 3: shapes of noise, error by dimension, draws, the elliptope, and a walk in a thin box.
(() => {
  const { plane, place } = Lesson, kinds = ["KK", "Z", "K"], names = ["K − K", "cross-polytope", "disc"];
  const shapes = (d) => [plane.around(d.KK), [[2, 0], [0, 2], [-2, 0], [0, -2]], plane.disc(Math.SQRT2)];
  const share = (r) => 1 - (1 + r) * Math.exp(-r);
  const quantile = (p) => { let [a, b] = [0, 50]; for (let i = 0; i < 60; i++) share((a + b) / 2) < p ? (a = (a + b) / 2) : (b = (a + b) / 2); return a; };
  const curves = (p, xs, rows, scale, labels) => rows.forEach((row, i) => p.curve(row.map((y, j) => [xs[j], y / scale]), ["Z", "K", "KK"][i], { label: labels[i] }));
  const prefixes = (s, [p], d, hidden = 0) => {
    p.axes({ x: [2.5, 250], y: [1e-5, 30], logx: true, logy: true, xlabel: "number of prefix sums m", ylabel: "error per query (rmse)" });
    p.line([[1, 0.1], [1000, 0.1]], "grey", { dash: true, width: 1 });
    curves(p, d.sizes, d.errors.slice(0, 3 - hidden), s.population * s.loss, ["Laplace", "ball", "K-norm of K − K"]);
  };

  Lesson.pictures([
    {
      handles: () => [{ kind: "KK", name: "share of the noise inside", at: (s) => [quantile(s.share), 0], to: (s, [x]) => Lesson.set("share", share(Math.max(0, x))), keys: (s, by) => Lesson.step("share", by) }],
      draw(s, [p], d) {
        p.axes({ x: [-9, 9], y: [-9, 9], equal: true });
        p.poly(plane.around(d.KK), "grey", { label: "K − K" });
        for (const i of s.shown) p.poly(plane.scaled(shapes(d)[i], quantile(s.share)), kinds[i], { empty: true, label: `noise of ${names[i]}` });
        return `area, E of squared length: ${d.table.map((row, i) => `${names[i]} ${row.map((x) => x.toFixed(3)).join(", ")}`).join("; ")}`;
      },
    },
    {
      predict: {
        ask: "Orange is the error of Laplace noise on prefix sums, blue of ball noise. Drag the ring to the error of noise shaped like K − K at m = 200.",
        at: [200, 5], along: "y", ratio: true, base: (s, p, d) => prefixes(s, p, d, 1), truth: (s) => [200, Lesson.data.errors[2][6] / (s.population * s.loss)],
      },
      handles: (s, d) => [{ kind: "KK", name: "number of records", at: () => [200, d.errors[2][6] / (s.population * s.loss)], to: (_, [, y]) => Lesson.set("population", d.errors[2][6] / (y * s.loss)), keys: (_, by) => Lesson.step("population", by) }],
      draw(s, p, d) {
        prefixes(s, p, d);
        const last = d.errors.map((row) => (row[6] / (s.population * s.loss)).toFixed(3));
        return `m = 200: Laplace ${last[0]}, ball ${last[1]}, K-norm ${last[2]}`;
      },
    },
    {
      panels: 2,
      handles: (s, d) => [{ kind: "Z", name: "size of the noise", at: () => [d.rmse[s.law] / s.privacy, 0], to: (_, [x]) => Lesson.set("privacy", d.rmse[s.law] / Math.max(0.1, x)), keys: (_, by) => Lesson.set("privacy", s.privacy - 0.1 * by) }],
      draw(s, [p, q], d) {
        const KK = plane.around(d.KK), draws = plane.scaled(d.clouds[s.law].slice(0, s.amount), 1 / s.privacy), gauges = draws.map((z) => plane.gauge(KK, z));
        p.axes({ x: [-12, 12], y: [-12, 12], equal: true });
        p.dots(draws, "Z", { r: 1.6, label: "noise Z on the sums" });
        p.poly(KK, "KK", { label: "K − K" });
        const bins = new Array(30).fill(0), e = s.privacy;
        for (const g of gauges) if (g < 12) bins[Math.floor(g / 0.4)] += 1 / (0.4 * draws.length);
        q.axes({ x: [0, 12], y: [0, 0.9], xlabel: "gauge of the noise in K − K" });
        q.bars(bins.map((n, i) => [0.4 * i, 0.4 * i + 0.4, 0, n]), "Z");
        q.line(Array.from({ length: 121 }, (_, i) => [i / 10, (e * e * i * Math.exp((-e * i) / 10)) / 10]), "truth", { label: "Gamma(2, 1/ε)" });
        return `rmse ${(d.rmse[s.law] / s.privacy).toFixed(3)}`;
      },
    },
    {
      panels: 2,
      handles: () => [{ track: "angle", kind: "K", name: "turn the solid" }],
      draw(s, [p, q], d) {
        p.axes({ x: [-1.7, 1.7], y: [-1.7, 1.5], equal: true, xticks: [], yticks: [] });
        const pairs = [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]].map((pair) => pair.map((i) => d.corners[i]));
        p.solid(d.elliptope, s.angle, "K smooth", pairs);
        p.named("K", "elliptope", "area");
        p.named("truth", "edges between the four records", "stroke");
        q.axes({ x: [-1.1, 1.1], y: [-1.1, 1.1], equal: true, xlabel: "x₁", ylabel: "x₂" });
        q.dots(d.points.slice(0, s.points), "K", { r: 1.8 });
        const seen = d.variances[place("points")];
        return `variance of an entry ${seen === null ? "nan" : seen.toFixed(3)}, theory 1/4`;
      },
    },
    {
      handles: (s, d) => [{ kind: "KK", name: "number of records", at: () => [10, d.pairs[2][4] / (s.people * s.budget)], to: (_, [, y]) => Lesson.set("people", d.pairs[2][4] / (y * s.budget)), keys: (_, by) => Lesson.step("people", by) }],
      draw(s, [p], d) {
        p.axes({ x: [1.8, 60], y: [1e-6, 50], logx: true, logy: true, xlabel: "yes/no columns d", ylabel: "error of a cell (rmse)", xticks: d.columns.map((n) => [n, n]) });
        p.line([[1, 0.01], [100, 0.01]], "grey", { dash: true, width: 1 });
        curves(p, d.columns, d.pairs, s.people * s.budget, ["Laplace", "ball", "cone over the elliptope"]);
        return `d = 10 on the elliptope: error ${(d.pairs[2][4] / (s.people * s.budget)).toFixed(5)}`;
      },
    },
    {
      panels: 2,
      handles: () => [{ panel: 1, track: "steps", kind: "Z", name: "steps of the walk" }],
      draw(s, [p, q], d) {
        const path = d.paths[place("thin")].slice(0, s.steps + 1), shares = d.shares[place("thin")][place("steps")], L = s.thin, tv = shares.reduce((sum, x) => sum + Math.abs(x - 0.05), 0) / 2;
        p.axes({ x: [-1.08 * L, 1.08 * L], y: [-1.1, 1.1], xlabel: "long side", ylabel: "short side" });
        p.poly([[-L, -1], [L, -1], [L, 1], [-L, 1]], "K", { label: "body" });
        p.line(path, "Z", { width: 0.8, label: "one walk" });
        p.dots(path, "Z", { r: 2 });
        q.axes({ x: [-L, L], y: [0, Math.max(0.12, 1.15 * Math.max(...shares))], xlabel: "long side", ylabel: "share of 2000 walks" });
        q.bars(shares.map((x, i) => [L * (i / 10 - 1), L * ((i + 1) / 10 - 1), 0, x]), "K");
        q.line([[-L, 0.05], [L, 0.05]], "truth", { label: "uniform" });
        return `one walk of ${s.steps} steps; measured tv ${tv.toFixed(3)}, delta at epsilon = 1: ${Math.min(1, (1 + Math.E) * tv).toFixed(3)}`;
      },
    },
  ]);
})();
