// One core that sends, one that answers: `abohawa replay`, autocannon and wrk in turn on the same plain server.

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { product } from '../../test/support/process.ts'
import { count, judged, median, type Row, rangeOf } from '../row.ts'
import { readyCommand } from '../servers/others.ts'
import {
  cpuOfChildren,
  loadCores,
  onCores,
  outputOf,
  serverCore,
  startListening,
  stepAside,
} from '../tools/processes.ts'
import { openFolder, path } from '../tools/world.ts'
import { connections, load } from '../tools/wrk.ts'

const bodyBytes = 10_000
const key = 'as-long-as-a-key-of-the-gateway-is-here'

type Sent = { readonly answers: number; readonly seconds: number }
type Sender = (url: string, folder: string, seconds: number) => Promise<Sent>

const resultOf = async (command: string, args: readonly string[]) =>
  JSON.parse(await outputOf(...onCores(loadCores, command, args)))

const replay: Sender = async (url, folder, seconds) => {
  const [traffic, keyFile] = [join(folder, 'one.ndjson'), join(folder, 'key')]
  const one = { at: new Date(1_790_000_000_000).toISOString(), method: 'GET', path, key: 'one' }
  await writeFile(traffic, `${JSON.stringify(one)}\n`.repeat(1_000))
  await writeFile(keyFile, key)
  const { totals } = await resultOf(product, [
    ...['replay', traffic, '--target', url, '--key', keyFile, '--loop', '--json'],
    ...['--as-fast-as', String(connections), '--duration', `${seconds}s`],
  ])
  return { answers: totals.answered, seconds: totals.seconds }
}

const program = new URL('../../node_modules/autocannon/autocannon.js', import.meta.url).pathname

const autocannon: Sender = async (url, _, seconds) => {
  const options = ['--json', '-c', String(connections), '-d', String(seconds), '-H', `x-api-key=${key}`]
  const { requests, duration } = await resultOf(process.execPath, [program, ...options, url + path])
  return { answers: requests.total, seconds: duration }
}

const wrk: Sender = (url, folder, seconds) => load(folder, { url, paths: [path], keys: [key] }, seconds)

const all = { 'abohawa replay': replay, autocannon, wrk }
type Sample = { readonly perSecond: number; readonly cpuMicros: number }

export const senders: Row = {
  id: 'senders',
  what: 'how many requests one core sends: abohawa replay, autocannon and wrk',
  run: async (scope, { rounds, seconds }, progress) => {
    stepAside()
    const folder = await openFolder(scope)
    const [bodyFile, headersFile] = [join(folder, 'body'), join(folder, 'headers')]
    await writeFile(bodyFile, 'x'.repeat(bodyBytes))
    await writeFile(headersFile, '{}')
    const server = readyCommand({ kind: 'raw', bodyFile, headersFile })
    const { urls } = await startListening(scope, folder, serverCore, server, { listeners: ['api'] })
    const measured = Object.entries(all).map(([name, sender]) => ({ name, sender, samples: [] as Sample[] }))
    for (let round = 1; round <= rounds; round++)
      for (const { name, sender, samples } of measured) {
        progress(`round ${round} of ${rounds}, ${name}`)
        const send = async (forSeconds: number) => {
          const before = cpuOfChildren()
          const sent = await sender(urls.api ?? '', folder, forSeconds)
          return { ...sent, cpu: cpuOfChildren() - before }
        }
        // A short run beside a long one, so that the cost of a start is in neither.
        const [short, long] = [await send(1), await send(1 + seconds)]
        const cpuMicros = ((long.cpu - short.cpu) * 1e6) / (long.answers - short.answers)
        samples.push({ perSecond: long.answers / long.seconds, cpuMicros })
      }
    const cpuOf = (samples: readonly Sample[]): number[] => samples.map(({ cpuMicros }) => cpuMicros)
    const [ours = 0, theirs = 0] = measured.map(({ samples }) => 1e6 / median(cpuOf(samples)))
    return {
      findings: [
        judged(
          'replay, vs autocannon',
          'at least as many requests',
          ours >= theirs,
          `${count(ours)}/s and ${count(theirs)}/s of a full core`,
          measured,
        ),
      ],
      table: {
        head: ['sender', 'requests a second', 'CPU µs'],
        lines: measured.map(({ name, samples }) => [
          name,
          count(median(samples.map(({ perSecond }) => perSecond))),
          rangeOf(cpuOf(samples), 1),
        ]),
      },
    }
  },
}
