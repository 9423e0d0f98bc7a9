// Waiting for the signal to stop. The first SIGINT, SIGTERM, SIGQUIT or, where asked for, SIGHUP means an orderly end; a second
// one, of whichever kind, ends at once, for whoever cannot wait.

/** Resolves with the signal that asks the process to stop. */
export const interruption = (...more: NodeJS.Signals[]): Promise<NodeJS.Signals> =>
  new Promise(resolve => {
    let asked = false
    const stop = (signal: NodeJS.Signals) => {
      if (asked) process.exit(1)
      asked = true
      resolve(signal)
    }
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGQUIT', ...more] as const) process.on(signal, stop)
  })
