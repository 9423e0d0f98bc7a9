// Loads cells from providers with the gateway's own client, one provider after the other, in a process whose memory a test can
// limit. Prints a line of JSON for each: the outcomes, how much of the body was read, and the growth of memory so far.

import { cellsFrom, openMeteo, providerAt } from './provider-set-up.ts'

export type LoadRequest = {
  /** Loaded first, so that code and pools are warm before anything is measured. */
  goodUrl: string
  urls: readonly string[]
  points: number
}

export type Outcome = {
  /** How many cells were loaded. */
  loaded: number
  /** The other cells by error: `code: sentence`. */
  failed: Record<string, number>
  /** Refusals by reason. */
  refused: Record<string, number>
  /** How many unzipped bytes of the body the decoder took. */
  readBytes: number
  /** The highest memory so far, beyond that of the first load: what earlier providers left behind counts too. */
  grewMiB: number
}

const { goodUrl, urls, points } = JSON.parse(process.argv[2] ?? '') as LoadRequest

/** The protocol of the product, and how much it takes of each body. */
const counting = () => {
  const read = { readBytes: 0 }
  const counted = async function* (body: AsyncIterable<Uint8Array>) {
    for await (const chunk of body) {
      read.readBytes += chunk.length
      yield chunk
    }
  }
  const protocol: typeof openMeteo = {
    ...openMeteo,
    requestFor: cells => {
      const request = openMeteo.requestFor(cells)
      return { ...request, decode: (body, ...given) => request.decode(counted(body), ...given) }
    },
  }
  return { protocol, read }
}

const loadAll = async (url: string) => {
  const { protocol, read } = counting()
  const { provider, refused } = providerAt({ teardown: () => {} }, url, {
    protocol,
    options: { maxPointsPerRequest: points, retries: 0, queueForMs: 1_000 },
  })
  const rows = Array.from({ length: points / 20 }, (_, row) => cellsFrom(21 + row / 10, 20))
  const results = await Promise.allSettled(rows.flat().map(cell => provider.load(cell)))
  // The connections stay open: some tests look for one that is never released.
  provider.close()
  return { results, refused, read }
}

const timesOf = (all: readonly string[]) =>
  Object.fromEntries(
    Map.groupBy(all, each => each)
      .entries()
      .map(([each, { length }]) => [each, length]),
  )

const measured = async (url: string, before: number): Promise<Outcome> => {
  const { results, refused, read } = await loadAll(url)
  const failed = results.flatMap(each =>
    each.status === 'rejected' ? [`${each.reason.code}: ${each.reason.message}`] : [],
  )
  return {
    loaded: results.filter(({ status }) => status === 'fulfilled').length,
    failed: timesOf(failed),
    refused: timesOf(refused),
    ...read,
    grewMiB: Math.round((process.resourceUsage().maxRSS - before) / 1024),
  }
}

await loadAll(goodUrl)
const before = process.resourceUsage().maxRSS
for (const url of urls) process.stdout.write(`${JSON.stringify(await measured(url, before))}\n`)
process.stdout.write('', () => process.exit(0))
