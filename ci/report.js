// Checks the report that contains this script, and writes the result into the document around it:
// `ok: ...` or the failures. Also writes which colours must be at which places, so that ci/report
// can check a screenshot. ci/report adds this script to the end of a report.
"use strict";
addEventListener("load", () => {
  const check = (holds, what) => { if (!holds) failures.push(what); };
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const root = document.documentElement;
  const width = root.clientWidth;

  // The page is not wider than its window. Wider elements scroll within themselves.
  check(root.scrollWidth <= width, `the page is ${root.scrollWidth} px wide, its window ${width}`);
  const isShown = (element) => element.getClientRects().length > 0;
  const isInScroller = (element) => element.closest(".scroll, svg, .legend svg") !== null;
  for (const element of all("body *").filter((one) => !isInScroller(one))) {
    const { right } = element.getBoundingClientRect();
    check(right <= width + 1, `${element.tagName}.${element.className} ends at ${right} px`);
  }

  // Each plot has axes with names and a legend, and draws nothing outside its picture.
  const plots = all(".plot");
  for (const plot of plots) {
    const name = plot.querySelector("figcaption").textContent;
    const shown = all(":scope > svg", plot).filter(isShown);
    check(shown.length === 1, `${name}: ${shown.length} pictures are shown`);
    check(all(".legend li", plot).length > 0, `${name}: no legend`);
    check(all(".legend li", plot).every((item) => item.textContent.trim()), `${name}: no name`);
    for (const svg of shown) {
      const titles = all(".axis-title", svg).map((title) => title.textContent);
      const least = plot.classList.contains("bars") ? 1 : 2;
      check(titles.length >= least && titles.every(Boolean), `${name}: axes are ${titles}`);
      const hasUnit = (title) => /, .|Processor|Number|PEs/.test(title);
      check(titles.every(hasUnit), `${name}: an axis without unit: ${titles}`);
      check(all(".tick", svg).length >= 2, `${name}: too few numbers at its axes`);
      check(svg.getAttribute("aria-label").length > 10, `${name}: no label for screen readers`);
      const frame = svg.viewBox.baseVal;
      for (const part of all("text, path, rect, line", svg).filter(isShown)) {
        const box = part.getBBox();
        const isIn = box.x >= -1 && box.y >= -1 && box.x + box.width <= frame.width + 1
          && box.y + box.height <= frame.height + 1;
        const what = part.textContent || part.className.baseVal;
        check(isIn, `${name}: ${what} leaves the picture (${Math.round(box.x)}, ${box.width})`);
      }
      // Curves and points lie between the axes.
      const axes = all("line.axis", svg).map((axis) => axis.getBBox());
      if (axes.length === 2) {
        const left = Math.min(...axes.map((box) => box.x)) - 5;
        const right = Math.max(...axes.map((box) => box.x + box.width)) + 5;
        const top = Math.min(...axes.map((box) => box.y)) - 5;
        const bottom = Math.max(...axes.map((box) => box.y + box.height)) + 5;
        for (const part of all(".curve, .point, .band", svg).filter(isShown)) {
          const box = part.getBBox();
          const isBetween = box.x >= left && box.x + box.width <= right && box.y >= top
            && box.y + box.height <= bottom;
          check(isBetween, `${name}: a ${part.className.baseVal} leaves the axes`);
        }
      }
      // Letters are large enough to read.
      const scale = svg.getBoundingClientRect().width / frame.width;
      check(scale * 11 >= 8.5, `${name}: letters of ${(scale * 11).toFixed(1)} px`);
    }
    // A click on a name in the legend highlights its series.
    const button = plot.querySelector(".legend button");
    check(button, `${name}: no button in the legend`);
    if (!button) continue;
    button.click();
    const on = all(".series.on", plot).length;
    check(on > 0 && plot.classList.contains("picked"), `${name}: the legend highlights nothing`);
    button.click();
    button.blur();
    check(!plot.classList.contains("picked"), `${name}: a second click does not end the highlight`);
    // Pointing at a point shows its value.
    const [svg] = shown;
    const point = svg && svg.querySelector(".point[data-tip]");
    if (point) {
      const box = point.getBoundingClientRect();
      svg.dispatchEvent(new PointerEvent("pointermove", {
        clientX: box.left + box.width / 2, clientY: box.top + box.height / 2, bubbles: true,
      }));
      const tip = plot.querySelector(".tip");
      check(!tip.hidden && tip.textContent.trim().length > 0, `${name}: no value is shown`);
      check(tip.getBoundingClientRect().right <= width + 1, `${name}: a value leaves the page`);
      svg.dispatchEvent(new PointerEvent("pointerleave"));
    }
  }

  // A click on a heading sorts, and a second click reverses the order.
  const tables = all("table");
  for (const table of tables.filter((one) => one.tBodies[0].rows.length > 1)) {
    const column = table.tHead.rows[0].cells.length - 1;
    const heading = table.tHead.rows[0].cells[column];
    const values = () => [...table.tBodies[0].rows].map((row) => row.cells[column])
      .filter((cell) => cell && cell.dataset.v !== undefined).map((cell) => Number(cell.dataset.v));
    heading.querySelector("button").click();
    check(heading.getAttribute("aria-sort") === "ascending", "a heading does not say how it sorts");
    const rising = values();
    check(rising.every((value, at) => at === 0 || rising[at - 1] <= value), `rising: ${rising}`);
    heading.querySelector("button").click();
    const falling = values();
    check(falling.every((value, at) => at === 0 || falling[at - 1] >= value), `${falling}`);
    check(all("th[scope]", table).length === all("th", table).length, "a heading without scope");
  }

  // Light and dark differ, and the button switches between them.
  const paper = () => getComputedStyle(document.body).backgroundColor;
  const light = "rgb(255, 255, 255)";
  const isDark = matchMedia("(prefers-color-scheme: dark)").matches;
  check((paper() !== light) === isDark, `the paper is ${paper()}`);
  const before = paper();
  document.getElementById("theme").click();
  check(paper() !== before, "the button does not switch light and dark");
  document.getElementById("theme").click();
  check(paper() === before, "the button does not switch back");
  const ids = all("[id]").map((element) => element.id);
  check(new Set(ids).size === ids.length, "an id is used twice");
  for (const link of all("nav a")) {
    check(document.querySelector(link.getAttribute("href")), `${link.textContent} leads nowhere`);
  }

  const scheme = isDark ? "dark" : "light";
  const found = failures.length > 0
    ? failures.join("; ")
    : `ok: ${plots.length} plots, ${tables.length} tables, ${width} px, ${scheme}`;
  // For each series of each plot, a mark that nothing covers, and its colour. Small marks are left
  // out, because antialiasing may change their colour.
  const isOnTop = (point) => {
    const { x, y, width: wide, height: high } = point.getBoundingClientRect();
    const seen = document.elementFromPoint(x + wide / 2, y + high / 2);
    return Math.min(wide, high) >= 6 && seen === point;
  };
  const marks = plots.flatMap((plot) => {
    const seen = new Map();
    for (const point of all(":scope > svg .point", plot).filter(isShown)) {
      const series = point.closest(".series");
      const isPlain = !series.classList.contains("faint") && isOnTop(point);
      if (isPlain) seen.set(series.dataset.s, point);
    }
    return [...seen.values()].map((point) => {
      const { x, y, width: wide, height: high } = point.getBoundingClientRect();
      const name = plot.querySelector("figcaption").textContent;
      return { name, x, y, wide, high, colour: getComputedStyle(point).fill };
    });
  });
  const findings = parent.document.createElement("pre");
  findings.id = "findings";
  findings.textContent = found;
  findings.dataset.marks = JSON.stringify(marks);
  parent.document.body.append(findings);
});
