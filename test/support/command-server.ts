// Runs command lines one after the other in one process, as the messages of its parent say, and answers with the exit code
// and what each printed. Ends with its parent. What depends on a separate process (signals, memory, streams) is tested
// with one: `runProcess` in process.ts.

import { run } from '../../src/cli/program.ts'
import { systemClock } from '../../src/common/clock.ts'
import { useConstants } from './constants.ts'

type Order = { readonly id: number; readonly args: readonly string[]; readonly env: NodeJS.ProcessEnv }
type Done = (error?: Error | null) => void

/** Collects what is written to a stream from now on. @returns the text so far */
const collect = (stream: NodeJS.WriteStream): (() => string) => {
  const chunks: Buffer[] = []
  stream.write = (chunk: string | Uint8Array, encoding?: BufferEncoding | Done, done?: Done): boolean => {
    chunks.push(Buffer.from(chunk as string))
    const taken = typeof encoding === 'function' ? encoding : done
    if (taken) queueMicrotask(taken)
    return true
  }
  return () => Buffer.concat(chunks).toString('utf8')
}

const answer = async ({ id, args, env }: Order): Promise<void> => {
  // Reports name the command line of their process.
  process.argv = [...process.argv.slice(0, 2), ...args]
  const stdout = collect(process.stdout)
  const stderr = collect(process.stderr)
  useConstants(env)
  const code = await run(args, { env, clock: systemClock })
  process.send?.({ id, code, stdout: stdout(), stderr: stderr() })
}

// Each command that can be interrupted listens for signals until its process ends, and one that writes traffic to standard output
// for its end.
for (const emitter of [process, process.stdout]) emitter.setMaxListeners(0)

let last = Promise.resolve()
process.on('message', (order: Order) => {
  last = last.then(() => answer(order))
})
process.on('disconnect', () => process.exit())
