// Floods a gateway with wrong keys, first mistyped ones and then well-formed ones that were never issued. Measures the
// refusals, the Redis commands and the memory of the process.

import { readFileSync } from 'node:fs'
import type { Redis } from 'ioredis'
import { createKey } from '../../src/keys/key-form.ts'
import type { Caller } from './callers.ts'
import { commandsSent, sendOn } from './quota-load.ts'

export type Flood = {
  readonly refused: number
  readonly sent: number
  /** Redis commands during the mistyped keys, beyond those of an idle gateway. */
  readonly commandsForMistyped: number
  readonly commandsForUnknown: number
  /** Resident memory of the process after each tenth, in MiB. */
  readonly residentMiB: readonly number[]
}

const residentMiB = (pid: number): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024

const mistyped = (): string => createKey().replace(/.$/, last => (last === '0' ? '1' : '0'))

/** On a gateway process that runs. @param raw a client of its Redis */
export const floodOn = async (
  { callers, pid, raw }: { callers: readonly Caller[]; pid: number; raw: Redis },
  requests: number,
  progress: (text: string) => void = () => {},
): Promise<Flood> => {
  const resident: number[] = []
  let refused = 0

  const flood = async (nextKey: () => string): Promise<number> => {
    const before = await commandsSent(raw)
    for (let tenth = 0; tenth < 5; tenth++) {
      let left = requests / 10
      const answers = await sendOn(callers, () => (left-- > 0 ? nextKey() : undefined))
      refused += answers.filter(({ status }) => status === 401).length
      resident.push(residentMiB(pid))
      progress(`${refused} refused, ${Math.round(resident.at(-1) ?? 0)} MiB`)
    }
    return (await commandsSent(raw)) - before
  }
  const commandsForMistyped = await flood(mistyped)
  const commandsForUnknown = await flood(createKey)
  return { refused, sent: requests, commandsForMistyped, commandsForUnknown, residentMiB: resident }
}
