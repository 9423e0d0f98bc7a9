// Standard output and error, while somebody reads them. A reader that leaves early, such as `head`, is no failure.

import { fstatSync, writeFileSync } from 'node:fs'
import { InputError, messageOf } from '../common/errors.ts'

let isClosed = false
/** Whether the latest writer waits for its text, and so learns itself that it failed. */
let isAwaited = false

/**
 * From now on a closed standard output is noticed, and one that can't be written for another reason ends the process. Standard
 * error has only remarks and progress: without its reader a command goes on.
 */
export const watchOutputs = (): void => {
  process.stderr.on('error', () => {})
  const { fd } = process.stdout
  // Node takes a write to a file that a full disk cuts off for a whole one.
  if (fstatSync(fd).isFile())
    process.stdout._write = (chunk, _encoding, done) => {
      try {
        writeFileSync(fd, chunk)
        done()
      } catch (error) {
        done(error as Error)
      }
    }
  process.stdout.on('error', error => {
    if (isOfClosedOutput(error)) {
      isClosed = true
      return
    }
    if (isAwaited) return
    process.stderr.write(`abohawa: ${unwritable(error).message}\n`)
    process.exit(1)
  })
}

/** Resolves when standard output has taken the text. @throws InputError, or what `isOfClosedOutput` tells */
export const writeAll = (text: string): Promise<void> =>
  new Promise((resolve, reject) => {
    isAwaited = true
    process.stdout.write(text, error => {
      if (error) return reject(isOfClosedOutput(error) ? error : unwritable(error))
      isAwaited = false
      resolve()
    })
  })

/** As writeAll, for what is lost where nobody reads it. @throws InputError for a closed output too */
export const writeSeen = (text: string): Promise<void> =>
  writeAll(text).catch(cause => {
    throw cause instanceof InputError ? cause : unwritable(cause)
  })

const unwritable = (cause: unknown): InputError =>
  new InputError(`standard output can't be written: ${messageOf(cause)}`, { cause })

export const isOutputClosed = (): boolean => isClosed

/** Whether a command failed because nobody reads its output. */
export const isOfClosedOutput = (error: unknown): boolean => {
  const { code, syscall }: NodeJS.ErrnoException = Object(error)
  return code === 'EPIPE' && syscall === 'write'
}
