// Lesson 0: two exact tables, a noisy table, and a noisy point outside of the triangle.
(() => {
  const { plane } = Lesson, K = [[0, 0], [1, 0], [1, 1]], kinds = ["healthy", "ill", "smokes", "smokes, ill"];
  const own = [[0, 0], [0, 0], [1, 0], [1, 1]], before = (s) => [s.smokers, Math.floor(s.smokers / 3)];
  const noisy = (s, d) => d.counts.map((count, i) => count + (2 / s.epsilon) * d.noise[s.draw][i]);
  const shares = (cells) => [(cells[2] + cells[3]) / 10, cells[3] / 10];
  const base = (s, [p], d) => {
    p.axes({ x: [-1, 2], y: [-0.9, 1.7], equal: true, xlabel: "smokes", ylabel: "smokes and is ill" });
    p.poly(K, "K", { label: "K" });
    p.dots([shares(noisy(s, d))], "Z", { r: 6, label: "noisy" });
  };

  Lesson.pictures([
    {
      handles: () => [
        { kind: "truth", name: "last month: smokers", at: before, to: (s, [x]) => Lesson.set("smokers", Math.round(x)), keys: (s, step) => Lesson.step("smokers", step) },
        { kind: "Z", name: "this month: Ann", at: (s) => plane.add(before(s), own[s.ann]), keys: (s, step) => Lesson.set("ann", (s.ann + step + 4) % 4), to: (s, p) => {
          const [x, y] = plane.sub(p, before(s));
          Lesson.set("ann", y > 0.5 ? 3 : x > 0.5 ? 2 : y < -0.5 ? 1 : 0);
        } }],
      draw(s, [p]) {
        const b = before(s), a = plane.add(b, own[s.ann]);
        p.axes({ x: [-1, 12], y: [-1, 6], xlabel: "smokers", ylabel: "smokers who are ill" });
        p.named("truth", "last month", "round");
        p.named("Z", "this month, with Ann", "round");
        p.arrow(b, a, "KK", { label: "Ann" });
        return `(${a}) less (${b}) is (${own[s.ann]}): Ann's own answers`.replace(/,/g, ", ");
      },
    },
    {
      handles: (s) => [{ kind: "Z", name: "scale of the noise", at: () => [3.45, 2 / s.epsilon], to: (_, [, y]) => Lesson.set("epsilon", 2 / Math.max(0.1, y)), keys: (_, step) => Lesson.step("epsilon", -step) }, { track: "draw", kind: "grey", name: "draw of the noise" }],
      draw(s, [p], d) {
        const cells = noisy(s, d), reach = Math.max(6, 1.25 * Math.max(2 / s.epsilon, ...cells.map(Math.abs)));
        p.axes({ x: [-0.5, 3.6], y: [-reach, reach], ylabel: "people", xticks: kinds.map((name, i) => [i, name]) });
        cells.forEach((cell, i) => p.bars([[i - 0.35, i + 0.35, 0, cell]], cell < 0 ? "Z" : "K"));
        p.line([[-1, 0], [4, 0]], "truth", { width: 1 });
        d.counts.forEach((count, i) => p.line([[i - 0.4, count], [i + 0.4, count]], "truth", { label: i ? "" : "truth" }));
        p.line([[3.45, 0], [3.45, 2 / s.epsilon]], "Z", { label: "scale of the noise" });
        return `${cells.filter((cell) => cell < 0).length} of 4 cells are negative; they add up to ${cells.reduce((x, y) => x + y).toFixed(3)}, not to 10`;
      },
    },
    {
      predict: {
        ask: "The noisy point is no answer of any data. Drag the ring to the point that you would publish.",
        at: [1.6, -0.6], base, truth: (s) => plane.nearest(K, shares(noisy(s, Lesson.data))),
      },
      handles: () => [{ track: "draw", kind: "Z", name: "draw of the noise" }],
      draw(s, [p], d) {
        const q = shares(noisy(s, d)), near = plane.nearest(K, q), truth = shares(d.counts), off = (point) => Math.hypot(...plane.sub(point, truth)).toFixed(3);
        base(s, [p], d);
        p.line([q, near], "grey", { width: 1 });
        p.dots([near], "after", { r: 6, label: "nearest in K" });
        p.dots([truth], "truth", { r: 5, label: "truth" });
        return `error before ${off(q)}, after ${off(near)}`;
      },
    },
  ]);
})();
