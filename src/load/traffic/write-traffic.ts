// Writes text to a file or to standard output, a chunk at a time, with gzip where the name ends in .gz. A file appears under
// its name when it is whole, and one that exists is replaced only if that is wanted.

import { randomBytes } from 'node:crypto'
import { constants, createWriteStream } from 'node:fs'
import { link, lstat, open, rename, rm, stat } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { InputError } from '../../common/errors.ts'
import { nameOfFile, standardOutput } from './file-bytes.ts'
import { lineOf, type TrafficRequest } from './traffic-request.ts'

const { O_CREAT, O_EXCL, O_WRONLY } = constants

export type WriteOptions = {
  /** Whether a file of that name may be replaced. */
  readonly force?: boolean
}

export async function* textOf(batches: AsyncIterable<readonly TrafficRequest[]>): AsyncGenerator<string> {
  for await (const batch of batches) {
    let text = ''
    for (const request of batch) text += `${lineOf(request)}\n`
    yield text
  }
}

/** @param path `-` is standard output. @throws InputError, before anything is read where the file must not be replaced */
export const writeText = async (
  path: string,
  text: AsyncIterable<string>,
  { force = false }: WriteOptions = {},
): Promise<void> => {
  if (path === standardOutput) {
    await pipeline(Readable.from(text, { objectMode: true }), process.stdout, { end: false })
    return
  }
  if (await isSink(path)) {
    await pipeline(Readable.from(text, { objectMode: true }), createWriteStream(path))
    return
  }
  await refuseExisting(path, force)
  const beside = `${path}.${randomBytes(6).toString('hex')}.part`
  try {
    await writeNew(beside, text, path.endsWith('.gz'))
    if (force) await rename(beside, path)
    else await link(beside, path).finally(() => rm(beside))
  } catch (cause) {
    await rm(beside, { force: true })
    const { code, syscall } = cause as NodeJS.ErrnoException
    if (code === 'EEXIST') throw existing(path)
    if (syscall === undefined) throw cause
    throw new InputError(`${nameOfFile(path)} can't be written: ${code}`, { cause })
  }
}

const writeNew = async (path: string, text: AsyncIterable<string>, isPacked: boolean): Promise<void> => {
  const handle = await open(path, O_WRONLY | O_CREAT | O_EXCL, 0o644)
  const source = Readable.from(text, { objectMode: true })
  const sink = createWriteStream(path, { fd: handle })
  await (isPacked ? pipeline(source, createGzip(), sink) : pipeline(source, sink))
}

/** Whether it is a device or a named pipe, which takes what comes and is not replaced. */
const isSink = async (path: string): Promise<boolean> => {
  const found = await stat(path).catch(() => undefined)
  return found !== undefined && (found.isCharacterDevice() || found.isFIFO())
}

const refuseExisting = async (path: string, force: boolean): Promise<void> => {
  const found = await lstat(path).catch(() => undefined)
  if (found !== undefined && !force) throw existing(path)
  if (found !== undefined && !found.isFile() && !found.isSymbolicLink())
    throw new InputError(`${nameOfFile(path)} can't be written: it is no file`)
}

const existing = (path: string): InputError =>
  new InputError(`${nameOfFile(path)} exists; --force replaces it`)
