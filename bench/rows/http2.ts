// HTTP/2 over TLS, as browsers and mobile apps fetch: few connections with many requests at once, from h2load. Our gateway beside the
// streams of node:http2 and beside bare Fastify, both with one ready body.

import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { localCertificate } from '../../test/support/http2-client.ts'
import { measureInRounds, resultOf, type Send } from '../rounds.ts'
import { quantile, type Row } from '../row.ts'
import { readySubject } from '../servers/others.ts'
import { loadCores, onCores, outputOf } from '../tools/processes.ts'
import { openWorld } from '../tools/world.ts'
import type { Loaded, Workload } from '../tools/wrk.ts'
import { onBothStores } from './one.ts'

const sessions = 10
const streams = 20

/** The settings of a gateway that offers HTTP/2. */
export const certificateEnv = {
  ABOHAWA_SERVER__TLS__CERT: localCertificate.cert,
  ABOHAWA_SERVER__TLS__KEY: localCertificate.key,
}

/** The status of every response counts, and the bytes of all bodies together. */
export const loadHttp2 = async (
  folder: string,
  { url, paths, keys: [key = 'as-long-as-a-key-of-the-gateway-is-here'] }: Workload,
  seconds: number,
  bodyBytes: number,
): Promise<Loaded> => {
  const logFile = join(folder, 'h2load.log')
  await rm(logFile, { force: true })
  const output = await outputOf(
    ...onCores(loadCores, 'h2load', [
      ...['-t1', `-c${sessions}`, `-m${streams}`, `-D${seconds}`, '-H', `x-api-key: ${key}`],
      ...['--log-file', logFile, `${url}${paths[0]}`],
    ]),
  )
  const figure = (pattern: RegExp): number => {
    const [, text] = pattern.exec(output) ?? []
    if (text === undefined) throw new Error(`h2load printed no ${pattern.source}: ${output}`)
    return Number(text)
  }
  if (!/Application protocol: h2$/m.test(output)) throw new Error(`HTTP/2 was not chosen: ${output}`)
  const answers = figure(/requests: .* (\d+) done/)
  const dataBytes = figure(/ \((\d+)\) data/)
  if (dataBytes < answers * bodyBytes)
    throw new Error(`${dataBytes} bytes of bodies for ${answers} answers of ${bodyBytes} each`)
  // Start, status and microseconds of each.
  const lines = (await readFile(logFile, 'utf8'))
    .trim()
    .split('\n')
    .map(line => line.split('\t'))
  const times = lines.map(([, , micros]) => Number(micros) / 1000)
  return {
    answers,
    seconds,
    p50: quantile(times, 0.5),
    p99: quantile(times, 0.99),
    wrong: figure(/requests: .* (\d+) failed/) + lines.filter(([, status]) => status !== '200').length,
  }
}

export const http2: Row = {
  id: 'http2',
  what: 'HTTP/2 over TLS, beside node:http2 and Fastify',
  run: async (scope, options, progress) => {
    const world = await openWorld(scope)
    const subjects = [
      ...(['raw', 'fastify'] as const).map(kind =>
        readySubject(world, { kind, tls: localCertificate, isHttp2: true }),
      ),
      ...onBothStores(world, {}, certificateEnv),
    ]
    // The bodies of the gateway change with the quarter-hour, and their length by a few bytes.
    const send: Send = async (...given) =>
      loadHttp2(...given, Math.min(world.body.length, (await world.reference()).body.length))
    const measured = await measureInRounds(world, subjects, options, progress, send)
    return resultOf(measured, {
      'answers per CPU, embedded, vs raw node:http2': ['embedded', 'raw', 'cpu', '≥', 0.65],
      'answers per CPU, Redis, vs raw node:http2': ['redis', 'raw', 'cpu', '≥', 0.6],
    })
  },
}
