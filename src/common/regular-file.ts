// Opens the files that settings, the command line and a reload name: regular files of at most a given size, both checked on the
// open descriptor. O_NONBLOCK keeps a pipe in their place from being waited for. The one other source is a pipe that the shell
// hands over, such as `<(command)`, which is read once.

import {
  accessSync,
  closeSync,
  constants,
  fstatSync,
  openSync,
  readSync,
  type Stats,
  statSync,
} from 'node:fs'
import { type FileHandle, open, stat } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'

const { W_OK, X_OK } = constants
const { O_APPEND, O_CREAT, O_NOCTTY, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_WRONLY } = constants
const readOnly = O_RDONLY | O_NONBLOCK | O_NOCTTY

/** Why a path can't be used: a reason that fits behind "which can't be read:". */
export class FileError extends Error {
  override name = 'FileError'
  readonly code: string

  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }
}

/** Sizes that files of a kind never have; the cost of a larger one is memory and time of the process that reads it. */
export const maxFileBytes = {
  /** Config files, secrets, tokens, certificates: larger than any of them is. */
  config: 262_144,
  /** Files of PEM and of keys. */
  pem: 1_048_576,
  /** Catalogues and tables, files of keys. */
  data: 268_435_456,
  /** The result of a run, which has at most some hundred steps. */
  result: 16_777_216,
  /** A line of a file with a record on each. */
  line: 1_048_576,
} as const

const noFile = (isDirectory: boolean): FileError =>
  new FileError(
    isDirectory ? 'EISDIR' : 'ENOTREG',
    `it is ${isDirectory ? 'a directory' : 'no regular file'}; allowed: a regular file`,
  )

/** @throws FileError for all but a regular file */
const requireRegular = (stats: Stats): void => {
  if (!stats.isFile()) throw noFile(stats.isDirectory())
}

const requireSize = (bytes: number, most: number, what = 'it is too large'): void => {
  if (bytes > most)
    throw new FileError('EFBIG', `${what}; allowed: at most ${most.toLocaleString('en-US')} bytes`)
}

const opened = (path: string, flags: number, mode?: number): number => {
  try {
    return openSync(path, flags, mode)
  } catch (error) {
    // What can't be written to: a directory, or a pipe that nobody reads.
    const { code } = error as NodeJS.ErrnoException
    throw code === 'EISDIR' || code === 'ENXIO' ? noFile(code === 'EISDIR') : error
  }
}

const openRegular = (path: string, flags: number, mode?: number): number => {
  const file = opened(path, flags, mode)
  try {
    requireRegular(fstatSync(file))
    return file
  } catch (error) {
    closeSync(file)
    throw error
  }
}

/** @param isPrivate whether it must be closed to other users of the machine @throws FileError, or the system's error */
export const readRegularFileSync = (path: string, most: number, isPrivate = false): Buffer => {
  if (isHandedOver(path)) return readHandedOver(path, most)
  const file = openRegular(path, readOnly)
  try {
    const { size, mode } = fstatSync(file)
    requireSize(size, most)
    if (isPrivate && (mode & 0o007) !== 0)
      throw new FileError(
        'EACCES',
        'other users of this machine may open it; allowed: mode 600 or 640 (chmod)',
      )
    return readToEnd(file, most)
  } finally {
    closeSync(file)
  }
}

// The size is only a hint: a file may grow, and some of the system say 0.
const readToEnd = (file: number, most: number): Buffer => {
  const chunks: Buffer[] = []
  for (let size = 0; ; requireSize(size, most)) {
    const bytes = Buffer.allocUnsafe(chunkBytes)
    const count = readSync(file, bytes)
    if (count === 0) return Buffer.concat(chunks)
    chunks.push(bytes.subarray(0, count))
    size += count
  }
}

/** The same, without holding up the process. */
export const readRegularFile = async (path: string, most: number): Promise<Buffer> => {
  if (isHandedOver(path)) return readHandedOver(path, most)
  await using file = await openStream(path)
  requireSize((await file.stat()).size, most)
  const bytes = Buffer.concat(await file.createReadStream({ end: most, autoClose: false }).toArray())
  requireSize(bytes.length, most)
  return bytes
}

/** A file of any size, to be read in chunks, or a pipe that the shell hands over. @throws FileError, or the system's error */
export const openStream = async (path: string): Promise<FileHandle> => {
  // The pipe's writer is there, and a reader waits for it as any command does.
  if (isHandedOver(path)) return open(path, O_RDONLY | O_NOCTTY)
  const file = await open(path, readOnly)
  try {
    requireRegular(await file.stat())
    return file
  } catch (error) {
    await file.close()
    throw error
  }
}

/**
 * The lines of a file of any size, each up to a length, without their breaks.
 * @throws FileError for a longer one, or the system's error
 */
export async function* readLines(path: string, maxBytes: number): AsyncGenerator<string, void, undefined> {
  await using file = await openStream(path)
  let begun: Buffer[] = []
  let size = 0
  const line = (end: Buffer): string => {
    const text = Buffer.concat([...begun, end]).toString()
    begun = []
    size = 0
    return text.endsWith('\r') ? text.slice(0, -1) : text
  }
  for await (const chunk of file.createReadStream({ highWaterMark: chunkBytes })) {
    const bytes = chunk as Buffer
    let from = 0
    for (let to = bytes.indexOf(newline); to !== -1; to = bytes.indexOf(newline, from)) {
      yield line(bytes.subarray(from, to))
      from = to + 1
    }
    begun.push(bytes.subarray(from))
    size += bytes.length - from
    requireSize(size, maxBytes, 'it has a line that is too long')
  }
  if (size > 0) yield line(Buffer.alloc(0))
}
const newline = 0x0a

/** Its text in UTF-8, without a byte order mark. @throws FileError also where it is none */
export const readTextFileSync = (path: string, most: number): string =>
  textOf(readRegularFileSync(path, most))

/** The same, without holding up the process. */
export const readTextFile = async (path: string, most: number): Promise<string> =>
  textOf(await readRegularFile(path, most))

const textOf = (bytes: Buffer): string => {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw new FileError('EILSEQ', 'it is not text in UTF-8')
  }
}

/**
 * A file to append to, created where it is missing. A link in its place is not followed: a user who may write the folder could
 * point it at another file of this process.
 */
export const openToAppend = (path: string, mode: number): number =>
  openRegular(path, appending | O_CREAT, mode)
const appending = O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY

/** Throws where `openToAppend` would, and creates nothing. */
export const requireAppendable = (path: string): void => {
  try {
    closeSync(openRegular(path, appending))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    accessSync(`${dirname(resolve(path))}/.`, W_OK | X_OK)
  }
}

/** Creates the file where it is missing, and changes nothing of one that is there. @throws FileError, or the system's error */
export const createRegularFile = (path: string, mode: number): void =>
  closeSync(openRegular(path, readOnly | O_CREAT, mode))

/** @throws FileError where something else than a file stands at the path; nothing where it is free */
export const requireFileOrFree = (path: string): void => {
  const found = statSync(path, { throwIfNoEntry: false })
  if (found) requireRegular(found)
}

/** What differs once a path leads to another file, or its file was written; the same text while it can't be looked at. */
export const versionOf = (path: string): Promise<string> =>
  stat(path, { bigint: true }).then(
    ({ dev, ino, size, mtimeNs, ctimeNs }) => [dev, ino, size, mtimeNs, ctimeNs].join(),
    () => 'unreadable',
  )

const chunkBytes = 65_536

const handedOver = /^\/(dev\/(stdin|fd\/\d+)|proc\/self\/fd\/\d+)$/

/** Whether it is a pipe by a descriptor that the process was started with. */
const isHandedOver = (path: string): boolean =>
  handedOver.test(path) && (read.has(path) || statSync(path, { throwIfNoEntry: false })?.isFIFO() === true)

// A pipe can be read once: its bytes are kept here for the next read of the same path, as in a reload.
const read = new Map<string, Buffer>()

const readHandedOver = (path: string, most: number): Buffer => {
  const known = read.get(path)
  if (known) return known
  const file = openSync(path, O_RDONLY | O_NOCTTY)
  try {
    const bytes = readToEnd(file, most)
    read.set(path, bytes)
    return bytes
  } finally {
    closeSync(file)
  }
}
