// Where a command writes traffic: standard output, or a new file, with gzip where its name ends in .gz.

import { once } from 'node:events'
import { open } from 'node:fs/promises'
import { finished, pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { InputError, messageOf } from '../errors.ts'
import { quoted } from '../outside-text.ts'
import type { Terminal } from './terminal.ts'

export type TrafficOutput = {
  /** Resolves when more may be written. @throws InputError */
  write(text: string): Promise<void>
  /** Resolves when all of it is written. @throws InputError */
  end(): Promise<void>
}

/** @throws InputError when there is a file already, or none can be written */
export const openTrafficOutput = async (
  terminal: Terminal,
  path: string | undefined,
): Promise<TrafficOutput> => {
  if (path === undefined) return { write: terminal.writeAll, end: async () => {} }
  const file = await open(path, 'wx').catch((cause: NodeJS.ErrnoException) => {
    throw new InputError(
      cause.code === 'EEXIST'
        ? `--out is ${quoted(path, 200)}, which is there already; allowed: a new file`
        : `--out is ${quoted(path, 200)}, which can't be written: ${messageOf(cause)}`,
      { cause },
    )
  })
  const stream = file.createWriteStream()
  const gzip = path.endsWith('.gz') ? createGzip() : undefined
  const input = gzip ?? stream
  let failed: InputError | undefined
  const written = (gzip ? pipeline(gzip, stream) : finished(stream)).catch(cause => {
    failed = new InputError(`${quoted(path, 200)} can't be written: ${messageOf(cause)}`, { cause })
  })
  return {
    write: async text => {
      if (!failed && !input.write(text)) await Promise.race([once(input, 'drain'), written])
      if (failed) throw failed
    },
    end: async () => {
      input.end()
      await written
      if (failed) throw failed
    },
  }
}
