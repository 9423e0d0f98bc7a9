// Files that a setting or an argument names: regular files up to a size, both checked on the open descriptor. O_NONBLOCK keeps a pipe
// in their place from being waited for. Only a pipe that the shell hands over, such as `<(command)`, is read, and once.

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

/** Why a path can't be used: a reason that fits after "which can't be read:". */
export class FileError extends Error {
  override name = 'FileError'
  readonly code: string

  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }
}

/** The largest size of a file of each kind: a larger one would cost memory and time. */
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
  isDirectory
    ? new FileError('EISDIR', 'it is a directory')
    : new FileError('ENOTREG', 'it is not a regular file')

/** @throws FileError for all but a regular file */
const requireRegular = (stats: Stats): void => {
  if (!stats.isFile()) throw noFile(stats.isDirectory())
}

const requireSize = (bytes: number, max: number, what = 'it'): void => {
  if (bytes > max) throw new FileError('EFBIG', `${what} is larger than ${max.toLocaleString('en-US')} bytes`)
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
export const readRegularFileSync = (path: string, max: number, isPrivate = false): Buffer => {
  if (isHandedOver(path)) return readHandedOver(path, max)
  const file = openRegular(path, readOnly)
  try {
    const { size, mode } = fstatSync(file)
    requireSize(size, max)
    if (isPrivate && (mode & 0o007) !== 0)
      throw new FileError('EACCES', 'other users of this machine may open it: set its mode to 600 or 640')
    return readToEnd(file, max)
  } finally {
    closeSync(file)
  }
}

// The size is only a hint: a file may grow, and some of the system say 0.
const readToEnd = (file: number, max: number): Buffer => {
  const chunks: Buffer[] = []
  for (let size = 0; ; requireSize(size, max)) {
    const bytes = Buffer.allocUnsafe(chunkBytes)
    const count = readSync(file, bytes)
    if (count === 0) return Buffer.concat(chunks)
    chunks.push(bytes.subarray(0, count))
    size += count
  }
}

/** The same, without holding up the process. */
export const readRegularFile = async (path: string, max: number): Promise<Buffer> => {
  if (isHandedOver(path)) return readHandedOver(path, max)
  await using file = await openStream(path)
  requireSize((await file.stat()).size, max)
  const bytes = Buffer.concat(await file.createReadStream({ end: max, autoClose: false }).toArray())
  requireSize(bytes.length, max)
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
  let rest = Buffer.alloc(0)
  for await (const chunk of file.createReadStream({ highWaterMark: chunkBytes })) {
    rest = Buffer.concat([rest, chunk as Buffer])
    for (let end = rest.indexOf(newline); end !== -1; end = rest.indexOf(newline)) {
      yield rest.toString('utf8', 0, end).replace(/\r$/, '')
      rest = rest.subarray(end + 1)
    }
    requireSize(rest.length, maxBytes, 'a line of it')
  }
  if (rest.length > 0) yield rest.toString().replace(/\r$/, '')
}

/** Its text in UTF-8, without a byte order mark. @throws FileError also where it is none */
export const readTextFileSync = (path: string, max: number): string => textOf(readRegularFileSync(path, max))

/** The same, without holding up the process. */
export const readTextFile = async (path: string, max: number): Promise<string> =>
  textOf(await readRegularFile(path, max))

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
const newline = 0x0a

const handedOver = /^\/(dev\/(stdin|fd\/\d+)|proc\/self\/fd\/\d+)$/

/** Whether it is a pipe by a descriptor that the process was started with. */
const isHandedOver = (path: string): boolean =>
  handedOver.test(path) && (read.has(path) || statSync(path, { throwIfNoEntry: false })?.isFIFO() === true)

// A pipe can be read once: its bytes are kept here for the next read of the same path, as in a reload.
const read = new Map<string, Buffer>()

const readHandedOver = (path: string, max: number): Buffer => {
  const known = read.get(path)
  if (known) return known
  const file = openSync(path, O_RDONLY | O_NOCTTY)
  try {
    const bytes = readToEnd(file, max)
    read.set(path, bytes)
    return bytes
  } finally {
    closeSync(file)
  }
}
