// Writes requests in the formats of other tools: goreplay's `.gor`, the targets of vegeta, CSV for k6 and spreadsheets, and
// the CSV of libCacheSim. No key stands in them: where a tool sends one, it sends the id, to be replaced by who has the keys.

import { isoOf } from '../../calendar.ts'
import { csvCells, csvLine } from '../../csv-text.ts'
import { InputError } from '../../errors.ts'
import { quoted } from '../../outside-text.ts'
import { placeOf } from './endpoint-of-path.ts'
import { gorSeparator } from './gor.ts'
import type { TrafficRequest } from './traffic-request.ts'

type Conversion = {
  readonly name: string
  /** Before the first request. */
  readonly begin: string
  readonly textOf: (request: TrafficRequest, place: Place) => string
}
/** `number` counts requests from 0, `ms` the time from the first; `target` is what stands before paths. */
type Place = { readonly number: number; readonly ms: number; readonly target: URL }

const conversions: readonly Conversion[] = [
  {
    // For goreplay.
    name: 'gor',
    begin: '',
    textOf: (request, { number, target }) => {
      const headers = Object.entries({ Host: target.host, ...headersOf(request) })
      const about = `1 ${number.toString(16).padStart(24, '0')} ${BigInt(request.at) * 1_000_000n} 0`
      return `${about}\n${request.method} ${request.path} HTTP/1.1\r\n${headers.map(pair => pair.join(': ')).join('\r\n')}\r\n\r\n${gorSeparator}`
    },
  },
  {
    // Targets for `vegeta attack -format=json`, which sends them at its own rate.
    name: 'vegeta',
    begin: '',
    textOf: (request, { target }) => {
      const header = Object.fromEntries(
        Object.entries(headersOf(request)).map(([name, value]) => [name, [value]]),
      )
      return `${JSON.stringify({ method: request.method, url: `${target.origin}${request.path}`, header })}\n`
    },
  },
  {
    // For k6 and spreadsheets.
    name: 'csv',
    begin: 'seconds,at,method,path,key,accepts,conditional,status,outcome,tier,cell,bytes,ms\r\n',
    textOf: (request, { ms: since }) => {
      const { at, method, path, key, accepts, conditional, status, outcome, tier, cell, bytes, ms } = request
      const values = [method, path, key, accepts, conditional, status, outcome, tier, cell, bytes, ms]
      return csvLine([since / 1_000, isoOf(at), ...values])
    },
  },
  {
    // For `cachesim FILE csv …`: the object is the cell, or the place where no cell is known.
    name: 'libcachesim',
    begin: 'time,obj_id,size\n',
    textOf: (request, { ms }) =>
      `${csvCells([Math.floor(ms / 1_000), objectOf(request), request.bytes || 1])}\n`,
  },
]

const headersOf = ({ key, accepts, conditional }: TrafficRequest): Record<string, string> => ({
  ...(key === undefined ? {} : { 'X-Api-Key': key }),
  ...(accepts === undefined ? {} : { 'Accept-Encoding': accepts }),
  // Which etag the client had is not recorded; this one is never the present one.
  ...(conditional ? { 'If-None-Match': '"recorded"' } : {}),
})

// Names without a comma; with a letter, since libCacheSim takes numbers for ids of another kind.
const objectOf = ({ cell, path }: TrafficRequest): string =>
  (cell === undefined ? placeOf(path) : `cell_${cell}`).replaceAll(',', '_')

/** @throws InputError */
export const conversionNamed = (name: string): Conversion => {
  const found = conversions.find(each => each.name === name)
  if (!found)
    throw new InputError(
      `the format is ${quoted(name)}; allowed: ${conversions.map(each => each.name).join(', ')}`,
    )
  return found
}

/** The text of all requests, a batch at a time. */
export async function* convertedText(
  { begin, textOf }: Conversion,
  batches: AsyncIterable<readonly TrafficRequest[]>,
  target: URL,
): AsyncGenerator<string> {
  yield begin
  let number = 0
  let first: number | undefined
  for await (const batch of batches) {
    let text = ''
    for (const request of batch) {
      first ??= request.at
      text += textOf(request, { number, ms: Math.max(0, request.at - first), target })
      number += 1
    }
    yield text
  }
}
