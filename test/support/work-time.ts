// A clock for what must be soon: it stands still while this process is not let work, because a machine that pauses or
// is busy with something else says nothing about what is timed.

const tickMs = 10
// A tick that comes later than this was held up.
const mostPerTickMs = 50

let worked = 0
let last = performance.now()
setInterval(() => {
  worked = workedMs()
  last = performance.now()
}, tickMs).unref()

/** For differences only. */
export const workedMs = (): number => worked + Math.min(mostPerTickMs, performance.now() - last)
