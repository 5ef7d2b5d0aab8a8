// Lesson 1: records and their mean, a claim and its separating line, a solid.
(() => {
  const { plane } = Lesson, kinds = ["healthy", "ill", "smoking", "both"];
  const homes = [[-0.03, -0.1], [-0.03, 0.12], [1.08, -0.08], [1.08, 1.0]], corners = [[0, 0], [0, 0], [1, 0], [1, 1]];
  const axes = { x: [-0.35, 1.45], y: [-0.3, 1.3], equal: true, xlabel: "q₁: smokes", ylabel: "q₂: smokes and is ill" };
  const spot = (kind, i) => [homes[kind][0] + (kind > 1 ? 1 : -1) * 0.085 * (i % 4), homes[kind][1] + 0.085 * Math.floor(i / 4) * (kind === 0 ? -1 : 1)];
  const mean = (s) => {
    const n = kinds.reduce((sum, kind) => sum + s[kind], 0);
    return [n, [0, 1].map((j) => kinds.reduce((sum, kind, k) => sum + s[kind] * corners[k][j], 0) / n)];
  };
  const triangle = (p, d) => {
    p.poly(plane.around(d.K), "K", { label: "K" });
    p.dots(d.K, "truth", { r: 3 });
  };
  // The records of a kind are handles; one that comes near another corner changes its kind.
  const records = (s) => kinds.flatMap((name, k) => Array.from({ length: s[name] }, (_, i) => {
    const handle = { kind: "grey", name: `a record: ${["healthy", "ill", "smokes", "smokes and ill"][k]}`, at: () => spot(k, i), of: k };
    const become = (state, next) => {
      if (next === handle.of || state[kinds[next]] >= 10) return;
      const old = handle.of;
      handle.of = next;
      state[kinds[old]] -= 1;
      Lesson.set(kinds[old], state[kinds[old]]);
      Lesson.set(kinds[next], state[kinds[next]] + 1);
    };
    handle.to = (state, p) => become(state, homes.reduce((best, home, j) => (Math.hypot(...plane.sub(home, p)) < Math.hypot(...plane.sub(homes[best], p)) ? j : best), 0));
    handle.keys = (state, step) => become(state, (handle.of + step + 4) % 4);
    return handle;
  }));

  Lesson.pictures([
    {
      predict: {
        ask: "Four healthy, two ill, three who smoke, one who smokes and is ill. Drag the ring to where the two answers are.",
        at: [0.7, 0.6], truth: (s) => mean(s)[1],
        base: (s, [p], d) => { p.axes(axes); triangle(p, d); },
      },
      handles: records,
      draw(s, [p], d) {
        const [n, at] = mean(s);
        p.axes(axes);
        triangle(p, d);
        p.text([0.1, -0.17], "healthy");
        p.text([-0.33, 0.24], "ill");
        p.text([1.0, -0.2], "smokes");
        p.text([0.88, 1.17], "smokes, ill");
        if (!n) return "no records, no answers";
        p.dots([at], "Z", { r: 8, label: `answers of ${n} records` });
        return `answers = (${at[0].toFixed(3)}, ${at[1].toFixed(3)})`;
      },
    },
    {
      handles: () => [{ kind: "Z", name: "claimed answers", at: (s) => [s.first, s.second], to: (s, [x, y]) => { Lesson.set("first", x); Lesson.set("second", y); } }],
      draw(s, [p], d) {
        const q = [s.first, s.second], near = plane.nearest(plane.around(d.K), q), n = plane.sub(q, near);
        p.axes({ ...axes, x: [-0.5, 1.5], y: [-0.5, 1.5] });
        triangle(p, d);
        p.named("Z", "claimed answers", "round");
        if (Math.hypot(...n) <= 1e-9) return "possible: the point lies in K";
        p.hyperplane(n, plane.dot(n, near), "h", { label: "separates" });
        const size = Math.max(...n.map(Math.abs)), [a, b, c] = [...n, plane.dot(n, near)].map((v) => v / size + 0);
        return `impossible: ${a.toFixed(3)} q₁ ${b >= 0 ? "+" : "−"} ${Math.abs(b).toFixed(3)} q₂ ≤ ${c.toFixed(3)} for all data`;
      },
    },
    {
      handles: () => [{ track: "turn", kind: "K", name: "turn the solid" }],
      draw(s, [p], d) {
        const solid = d.solids[s.shown], middle = [0, 1, 2].map((j) => solid.corners.reduce((sum, v) => sum + v[j] / solid.corners.length, 0));
        const reach = Math.max(...solid.corners.map((v) => Math.hypot(...v.map((x, j) => x - middle[j]))));
        p.axes({ x: [-1.2, 1.2], y: [-1.3, 1.1], equal: true, xticks: [], yticks: [] });
        p.solid({ faces: solid.faces, corners: solid.corners.map((v) => v.map((x, j) => (x - middle[j]) / reach)) }, s.turn, "K");
        return `${solid.corners.length} corners`;
      },
    },
  ]);
})();
