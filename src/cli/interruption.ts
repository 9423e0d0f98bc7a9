// Waits for a signal to stop. The first SIGINT, SIGTERM, SIGQUIT (or SIGHUP, if the caller adds it) starts a graceful shutdown;
// a second signal of any kind exits at once.

/** Resolves with the first signal. */
export const interruption = (...more: NodeJS.Signals[]): Promise<NodeJS.Signals> =>
  new Promise(resolve => {
    let isStopping = false
    const stop = (signal: NodeJS.Signals) => {
      if (isStopping) process.exit(1)
      isStopping = true
      resolve(signal)
    }
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGQUIT', ...more] as const) process.on(signal, stop)
  })

/**
 * The same for a process that another one has started: resolves with its order, or a signal sent to this process alone. What
 * a terminal or a service manager sends to all processes at once is the other one's to judge.
 */
export const orderToStop = (): Promise<string> =>
  new Promise(resolve => {
    process.on('message', order => {
      if (order === 'stop') resolve('order')
    })
    process.on('SIGTERM', () => resolve('SIGTERM'))
    for (const signal of ['SIGINT', 'SIGQUIT'] as const) process.on(signal, () => {})
  })
