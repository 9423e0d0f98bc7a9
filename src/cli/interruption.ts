// Waiting for the signal to stop. The first SIGINT or SIGTERM asks for an orderly end; a second one ends at once, for
// whoever cannot wait.

/** Resolves with the signal that asks the process to stop. */
export const interruption = (): Promise<NodeJS.Signals> =>
  new Promise(resolve => {
    const stop = (signal: NodeJS.Signals) => {
      resolve(signal)
      process.once(signal, () => process.exit(1))
    }
    process.once('SIGINT', stop)
    process.once('SIGTERM', stop)
  })
