// Whether somebody still reads standard output and standard error. A reader that leaves early, such as `head`, is no failure: a command goes on and
// ends with its own exit code, and what only has output ends well.

let isClosed = false

/**
 * From now on a closed standard output is noticed, and one that can't be written for another reason ends the process. Standard
 * error has remarks and progress alone: without a reader of them a command goes on.
 */
export const watchOutputs = (): void => {
  process.stderr.on('error', () => {})
  process.stdout.on('error', error => {
    if (isOfClosedOutput(error)) {
      isClosed = true
      return
    }
    process.stderr.write(`abohawa: standard output can't be written: ${error.message}\n`)
    process.exit(1)
  })
}

export const isOutputClosed = (): boolean => isClosed

/** Whether a command failed because nobody reads its output. */
export const isOfClosedOutput = (error: unknown): boolean => {
  const { code, syscall }: NodeJS.ErrnoException = Object(error)
  return code === 'EPIPE' && syscall === 'write'
}
