// Why a request has no answer, as the result has it. Errors of the generator, such as limits of its machine, are apart from all
// others: they say nothing of the target, so they are never counted as its failures.

const limits: Readonly<Record<string, string>> = {
  EMFILE: 'the load generator may open no more files, and so no more connections, than `ulimit -n` says',
  ENFILE: 'this machine may open no more files, and so no more connections',
  EADDRNOTAVAIL: 'this machine has no free port or address for another connection to the target',
  ENOBUFS: 'this machine has no memory for another connection',
  ENOMEM: 'this machine has no memory for another connection',
}
const sentences = new Set(Object.values(limits))

/** The code of what kept a connection from being made; of several addresses, the first that says something of the target. */
export const codeOf = ({ code = '', errors = [] }: NodeJS.ErrnoException & { errors?: unknown[] }): string =>
  errors.map(error => (error as NodeJS.ErrnoException).code ?? '').find(each => limits[each] === undefined) ??
  code

/** In words; undefined for what is no limit of this machine. */
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

// So that a limit is not run into thousands of times a second.
const pauseMs = 100

/** How many connections there may be. At a limit of this machine it goes on with those that it has. */
export const createCapacity = (wanted: number) => {
  let maxOpen = wanted
  let pausedUntil = 0
  return {
    /** Whether one more connection may be opened beside so many. */
    allows: (open: number): boolean => open < maxOpen && performance.now() >= pausedUntil,
    limited: (open: number): void => {
      maxOpen = Math.max(1, Math.min(maxOpen, open))
      pausedUntil = performance.now() + pauseMs
    },
  }
}
