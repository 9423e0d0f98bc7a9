// Load over HTTP/2 and TLS from h2load: few connections with many streams each, whose next request goes out on the end of a
// response. Checks the status of every response and the bytes of all bodies together.

import { spawnSync } from 'node:child_process'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { sorted } from '../row.ts'
import { outputOf } from './command-output.ts'
import type { Loaded, Workload } from './load.ts'
import { loadCores, onCores } from './pinned.ts'

export const sessions = 10
export const streams = 20

const version = /nghttp2\/(\S+)/.exec(spawnSync('h2load', ['--version']).stdout?.toString() ?? '')?.[1]

export const http2Loader = version && `h2load ${version}`
export const withoutHttp2Loader = 'h2load is not installed (Debian and Ubuntu: nghttp2-client)'

/** @param bodyBytes the length of each body, where all are the same */
export const loadHttp2 = async (
  folder: string,
  { url, paths, keys: [key = ''] }: Workload,
  seconds: number,
  bodyBytes?: number,
): Promise<Loaded> => {
  const name = join(folder, `http2-load-${new URL(url).port}`)
  const [urlsFile, logFile] = [`${name}.urls`, `${name}.log`]
  await writeFile(urlsFile, paths.map(path => `${url}${path}\n`).join(''))
  await rm(logFile, { force: true })
  const output = await outputOf(
    ...onCores(loadCores, 'h2load', [
      ...['-t1', `-c${sessions}`, `-m${streams}`, `-D${seconds}`],
      ...['-H', `x-api-key: ${key}`, '-i', urlsFile, '--log-file', logFile],
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
  if (bodyBytes !== undefined && dataBytes < answers * bodyBytes)
    throw new Error(`${dataBytes} bytes of bodies for ${answers} answers of ${bodyBytes} each`)
  const times: number[] = []
  let wrong = figure(/requests: .* (\d+) failed/)
  // Start, status and microseconds of each.
  for (const line of (await readFile(logFile, 'utf8')).split('\n')) {
    const [, status, micros] = line.split('\t')
    if (micros === undefined) continue
    if (status !== '200') wrong += 1
    times.push(Number(micros) / 1000)
  }
  const inOrder = sorted(times)
  const at = (share: number): number => inOrder[Math.floor(inOrder.length * share)] ?? Number.NaN
  return { answers, seconds, p50: at(0.5), p99: at(0.99), wrong }
}
