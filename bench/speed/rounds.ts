// Rounds in which every contestant has its turn, so that whatever else the machine does meets all of them; and the
// checks that what was measured was right and counted.

import { askOnce, type Contestant } from './contestants.ts'
import { connections, type Load, load } from './load.ts'
import { processorUs } from './pinned.ts'

export type Turn = Load & {
  /** Processor time of the server's process per request, in µs. */
  readonly cpuUs: number
}

export type Measured = { readonly contestant: Contestant; readonly turns: readonly Turn[] }

// Requests that were on their way when a turn ended are counted, and seen by nobody.
const check = async (contestant: Contestant, answered: number, before: number | undefined): Promise<void> => {
  if (before === undefined || !contestant.counted) return
  // Each look at the count of a gateway is a request of each key itself.
  const looks = contestant.id.startsWith('nginx') ? 0 : contestant.keys.length
  const counted = (await contestant.counted()) - before - looks
  if (counted < answered || counted > answered + connections)
    throw new Error(`${contestant.id}: ${answered} were answered and ${counted} counted`)
}

const expectRight = async (contestant: Contestant, body: Buffer): Promise<void> => {
  const key = contestant.keys[0] ?? ''
  const { status, bytes, headers } = await askOnce(contestant, key)
  if (status !== contestant.status) throw new Error(`${contestant.id} answered ${status}`)
  if (contestant.status === 304) return
  const plain =
    headers['content-encoding'] === undefined
      ? bytes
      : (await askOnce({ ...contestant, headers: {} }, key)).bytes
  const about = JSON.parse(plain.toString()) as { location?: { id?: string } }
  if (about.location?.id !== '3026' || Math.abs(plain.length - body.length) > body.length / 20)
    throw new Error(`${contestant.id} answered another body, of ${plain.length} bytes`)
}

export const measureRounds = async (
  contestants: readonly Contestant[],
  body: Buffer,
  { rounds, seconds, folder }: { rounds: number; seconds: number; folder: string },
  tell: (text: string) => void,
): Promise<Measured[]> => {
  const turns = new Map<Contestant, Turn[]>(contestants.map(one => [one, []]))
  const turn = async (contestant: Contestant, lasting: number): Promise<Turn> => {
    const before = await contestant.counted?.()
    const cpu = processorUs(contestant.pid)
    const { url, keys, headers, status } = contestant
    const found = await load({ url, keys, headers, status, connections, seconds: lasting, folder })
    const cpuUs = (processorUs(contestant.pid) - cpu) / found.requests
    if (found.wrong > 0) throw new Error(`${contestant.id}: ${found.wrong} wrong answers`)
    await check(contestant, found.requests, before)
    return { ...found, cpuUs }
  }
  for (const contestant of contestants) {
    tell(`warming up: ${contestant.id}`)
    await expectRight(contestant, body)
    await turn(contestant, 1)
  }
  for (let round = 1; round <= rounds; round++)
    for (const contestant of contestants) {
      tell(`round ${round} of ${rounds}: ${contestant.id}`)
      turns.get(contestant)?.push(await turn(contestant, seconds))
    }
  for (const contestant of contestants) await expectRight(contestant, body)
  return [...turns].map(([contestant, done]) => ({ contestant, turns: done }))
}
