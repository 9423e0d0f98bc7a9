// Waits for a signal to stop. The first SIGINT, SIGTERM, SIGQUIT (or SIGHUP, if the caller adds it) starts a graceful shutdown;
// a second signal of any kind exits at once, unless it comes so soon that it is the same one.

// A terminal sends Ctrl-C to all processes of a job, and those that started this one, such as npm, hand it on too.
const sameWithinMs = 1_000

/** Resolves with the first signal. */
export const interruption = (...more: NodeJS.Signals[]): Promise<NodeJS.Signals> =>
  new Promise(resolve => {
    let firstAt: number | undefined
    const stop = (signal: NodeJS.Signals) => {
      const now = performance.now()
      firstAt ??= now
      if (now - firstAt >= sameWithinMs) process.exit(1)
      resolve(signal)
    }
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGQUIT', ...more] as const) process.on(signal, stop)
  })

/**
 * The same for a process that another one has started: resolves with its order, or a signal sent to this process alone. What
 * a terminal or a service manager sends to all processes at once is for the other one to handle.
 */
export const stopCommand = (): Promise<string> =>
  new Promise(resolve => {
    process.on('message', order => {
      if (order === 'stop') resolve('order')
    })
    process.on('SIGTERM', () => resolve('SIGTERM'))
    for (const signal of ['SIGINT', 'SIGQUIT'] as const) process.on(signal, () => {})
  })
