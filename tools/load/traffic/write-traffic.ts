// Writes text to a file or to standard output in chunks, with gzip if the name ends in .gz. A file appears when it is complete.

import { createWriteStream } from 'node:fs'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { InputError } from 'abohawa/common/errors.ts'
import { nameOfFile, standardOutput } from 'abohawa/common/file-bytes.ts'
import { isSink, writeBeside } from 'abohawa/common/write-beside.ts'
import { lineOf, type TrafficRequest } from './traffic-request.ts'

export async function* textOf(batches: AsyncIterable<readonly TrafficRequest[]>): AsyncGenerator<string> {
  for await (const batch of batches) {
    let text = ''
    for (const request of batch) text += `${lineOf(request)}\n`
    yield text
  }
}

/** @param path `-` is standard output @param force replaces a file @throws InputError for a file that can't be written or exists */
export const writeText = async (
  path: string,
  text: AsyncIterable<string>,
  { force = false }: { readonly force?: boolean } = {},
): Promise<void> => {
  const source = Readable.from(text, { objectMode: true })
  if (path === standardOutput) return pipeline(source, process.stdout, { end: false })
  if (await isSink(path)) return pipeline(source, createWriteStream(path))
  try {
    await writeBeside(path, { mode: 0o644, force }, async (beside, handle) => {
      const sink = createWriteStream(beside, { fd: handle })
      await (path.endsWith('.gz') ? pipeline(source, createGzip(), sink) : pipeline(source, sink))
    })
  } catch (cause) {
    const { code, syscall } = cause as NodeJS.ErrnoException
    if (code === 'EEXIST') throw new InputError(`${nameOfFile(path)} exists; --force replaces it`, { cause })
    if (syscall === undefined) throw cause
    throw new InputError(`${nameOfFile(path)} can't be written: ${code}`, { cause })
  }
}
