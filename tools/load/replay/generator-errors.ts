// Why a request has no response. Limits of the load generator's machine are kept apart: they are never counted as failures of the
// target.

const limits: Readonly<Record<string, string>> = {
  EMFILE: 'the load generator reached its limit of open files (`ulimit -n`)',
  ENFILE: 'this machine reached its limit of open files',
  EADDRNOTAVAIL: 'this machine has no free port for another connection to the target',
  ENOBUFS: 'this machine has no memory for another connection',
  ENOMEM: 'this machine has no memory for another connection',
}
const sentences = new Set(Object.values(limits))

/** The code of a connection error; of several addresses, the first that is not a limit of this machine. */
export const codeOf = ({ code = '', errors = [] }: NodeJS.ErrnoException & { errors?: unknown[] }): string =>
  errors.map(error => (error as NodeJS.ErrnoException).code ?? '').find(each => limits[each] === undefined) ??
  code

/** A limit of this machine as a sentence, else undefined. */
export const generatorErrorOf = (error: unknown): string | undefined =>
  error instanceof Error ? limits[codeOf(error)] : undefined

export const isGeneratorError = (reason: string): boolean => sentences.has(reason)

const reasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'refused',
  ENOENT: 'refused',
  ECONNRESET: 'reset',
  EPIPE: 'reset',
  ETIMEDOUT: 'timeout',
  ENOTFOUND: 'name not found',
}

export const reasonOf = (error: NodeJS.ErrnoException): string => {
  const code = codeOf(error)
  return generatorErrorOf(error) ?? reasons[code] ?? (/CERT|TLS|SSL/.test(code) ? 'tls' : 'connection')
}

// Avoids running into a limit thousands of times a second.
const pauseMs = 100

/** Bounds the number of connections. At a limit of this machine, the run continues with the open connections. */
export const createCapacity = (wanted: number) => {
  let maxOpen = wanted
  let pausedUntil = 0
  return {
    /** Whether one more connection may be opened. */
    allows: (open: number): boolean => open < maxOpen && performance.now() >= pausedUntil,
    limited: (open: number): void => {
      maxOpen = Math.max(1, Math.min(maxOpen, open))
      pausedUntil = performance.now() + pauseMs
    },
  }
}
