// Relative times, such as "5 min. ago".

import { all } from "./dom.js";

const relative = new Intl.RelativeTimeFormat(undefined, { numeric: "auto", style: "narrow" });

/** @param {Date} date */
function ago(date) {
  let distance = (date.getTime() - Date.now()) / 1000;
  for (const [unit, size] of Object.entries({ second: 60, minute: 60, hour: 24, day: 30 })) {
    if (Math.abs(distance) < size) {
      return relative.format(Math.round(distance), /** @type {Intl.RelativeTimeFormatUnit} */ (unit));
    }
    distance /= size;
  }
  return date.toLocaleDateString();
}

/** Writes the relative time into each `<time>`. @param {ParentNode} [root] */
export function showTimes(root = document) {
  for (const time of all("time", root)) {
    const date = new Date(time.dateTime);
    time.title = date.toLocaleString();
    time.textContent = ago(date);
  }
}
