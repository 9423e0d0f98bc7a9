// Signals of a process: holds those that come while it still loads its code, and waits for one to stop. The first SIGINT, SIGTERM,
// SIGQUIT (or SIGHUP, if the caller adds it) starts a graceful shutdown; a second signal of any kind exits at once, unless it
// comes so soon that it is the same one. Imports nothing, so that `main.ts` can hold signals before anything else is loaded.

// A terminal sends Ctrl-C to all processes of a job, and those that started this one, such as npm, hand it on too.
export const sameWithinMs = 1_000

const held = new Set<NodeJS.Signals>()
const hold = (signal: NodeJS.Signals): void => void held.add(signal)

/**
 * From now on the signals of a process that runs until it is stopped wait for the part that takes them, which is loaded later:
 * without a listener each of them would end the process. A signal that no part takes does nothing.
 */
export const holdSignals = (): void => {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGQUIT', 'SIGHUP', 'SIGALRM', 'SIGUSR2'] as const)
    process.on(signal, hold)
}

/** Calls the listener at each such signal, and immediately for a held one. */
export const onSignal = (signal: NodeJS.Signals, listener: (signal: NodeJS.Signals) => void): void => {
  process.on(signal, listener)
  process.off(signal, hold)
  if (held.delete(signal)) listener(signal)
}

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
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGQUIT', ...more] as const) onSignal(signal, stop)
  })

/** Aborted with the first signal, or the end of the terminal. */
export const stoppedBySignal = (): AbortController => {
  const stopping = new AbortController()
  void interruption('SIGHUP').then(() => stopping.abort())
  return stopping
}

/**
 * The same for a child process: resolves with its parent's order, or with a SIGTERM of its own. The parent handles what a
 * terminal sends to the whole job.
 */
export const stopCommand = (): Promise<string> =>
  new Promise(resolve => {
    process.on('message', order => {
      if (order === 'stop') resolve('order')
    })
    onSignal('SIGTERM', resolve)
    for (const signal of ['SIGINT', 'SIGQUIT'] as const) onSignal(signal, () => {})
  })
