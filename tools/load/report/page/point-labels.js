// Where the names of a chart's points stand: points in one place share a label, and no label covers another one.

/** @typedef {{ name: string, x: number, y: number }} Point the place in pixels */
/** @typedef {{ text: string, x: number, y: number }} Label `x` is its left end, `y` its middle */
/** @typedef {{ left: number, right: number, top: number, bottom: number }} Box */

/** @param {Box} one @param {Box} other */
const overlap = (one, other) =>
  one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom

/**
 * @param {readonly Point[]} points
 * @param {{ widthOf: (text: string) => number, size: number, gap: number, right: number }} style `size` is the height of the text, `gap`
 * its distance from the middle of a point, `right` the end of the canvas
 * @returns {Label[]} a label for each place, by the first point in it
 */
export const pointLabels = (points, { widthOf, size, gap, right }) => {
  /** @type {{ names: string[], x: number, y: number }[]} */
  const places = []
  for (const { name, x, y } of points) {
    const place = places.find(each => Math.abs(each.x - x) < gap / 2 && Math.abs(each.y - y) < gap / 2)
    if (place) place.names.push(name)
    else places.push({ names: [name], x, y })
  }
  const dots = places.map(({ x, y }) => ({
    left: x - gap / 2,
    right: x + gap / 2,
    top: y - gap / 2,
    bottom: y + gap / 2,
  }))
  /** @type {Box[]} */
  const taken = []
  return places.map(({ names, x, y }, i) => {
    const text = names.join(', ')
    const width = widthOf(text)
    const choices = [
      { x: x + gap, y },
      { x: x - gap - width, y },
      { x: x - width / 2, y: y - gap - size / 2 },
      { x: x - width / 2, y: y + gap + size / 2 },
    ].map(at => ({ text, ...at }))
    /** @param {Label} label @returns {Box} */
    const boxOf = label => ({
      left: label.x,
      right: label.x + width,
      top: label.y - size / 2,
      bottom: label.y + size / 2,
    })
    const others = [...taken, ...dots.filter((_, place) => place !== i)]
    const isFree = (/** @type {Label} */ label) =>
      label.x >= 0 && label.x + width <= right && !others.some(other => overlap(other, boxOf(label)))
    const [usual = { text, x, y }] = choices
    const label = choices.find(isFree) ?? usual
    taken.push(boxOf(label))
    return label
  })
}
