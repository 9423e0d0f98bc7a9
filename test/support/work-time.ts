// A clock for time limits in tests: it stands still while this process gets no processor time, because a delay of the
// machine says nothing about the code under test.

const tickMs = 10
// A tick that comes later than this was delayed by the machine.
const maxPerTickMs = 50

let worked = 0
let last = performance.now()
setInterval(() => {
  worked = workedMs()
  last = performance.now()
}, tickMs).unref()

/** For differences only. */
export const workedMs = (): number => worked + Math.min(maxPerTickMs, performance.now() - last)
