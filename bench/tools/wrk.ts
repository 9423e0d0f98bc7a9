// The load of wrk: kept connections that send the next request on the response to the last, for some seconds. Returns the number of
// responses, their latency, and how many were wrong.

import { spawnSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { loadCores, onCores, outputOf } from './processes.ts'

export const connections = 64

export type Workload = {
  readonly url: string
  /** Requested in turn, each with all headers. */
  readonly paths: readonly string[]
  /** Sent in turn as `x-api-key`; empty where nobody checks it. */
  readonly keys: readonly string[]
  readonly headers?: Readonly<Record<string, string>>
  /** Further headers of each request, in turn like the paths. */
  readonly headersInTurn?: readonly Readonly<Record<string, string>>[]
}

export type Loaded = {
  readonly answers: number
  readonly seconds: number
  readonly p50: number
  readonly p99: number
  /** Responses of 400 and above, broken connections, and requests without a response in time. */
  readonly wrong: number
}

const wrkVersion = /^wrk (?:debian\/)?(\S+)/.exec(
  spawnSync('wrk', ['--version']).stdout?.toString() ?? '',
)?.[1]

/** The head of each request on its own line, with tabs for its line breaks. */
const headLines = ({ url, paths, keys, headers = {}, headersInTurn = [] }: Workload): string => {
  const { host } = new URL(url)
  const line = ([name, value]: [string, string]): string => `\t${name}: ${value}`
  const ofAll = `\thost: ${host}${Object.entries(headers).map(line).join('')}`
  const length = Math.max(paths.length, keys.length, headersInTurn.length)
  return Array.from({ length }, (_, i) => {
    const key = keys.length > 0 ? `\tx-api-key: ${keys[i % keys.length]}` : ''
    const own = Object.entries(headersInTurn[i % headersInTurn.length] ?? {})
    return `GET ${paths[i % paths.length]} HTTP/1.1${ofAll}${key}${own.map(line).join('')}\n`
  }).join('')
}

/** Lua that sends the requests of a file in turn. A script may not hold hundreds of thousands of texts. */
const sendInTurn = (linesFile: string): string => `local requests = {}
local last = 0
function init()
  for line in io.lines(${JSON.stringify(linesFile)}) do
    requests[#requests + 1] = line:gsub("\\t", "\\r\\n") .. "\\r\\n\\r\\n"
  end
end
function request()
  last = last % #requests + 1
  return requests[last]
end
`

/** Lua that prints the result; latencies of wrk are in microseconds. */
const printResult = `function done(summary, latency)
  local e = summary.errors
  print(string.format('{"answers":%d,"seconds":%f,"p50":%f,"p99":%f,"wrong":%d}', summary.requests,
    summary.duration / 1e6, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
    e.status + e.connect + e.read + e.write + e.timeout))
end
`

/** @param atOnce connections @throws Error where wrk is not installed */
export const load = async (
  folder: string,
  workload: Workload,
  seconds: number,
  atOnce = connections,
): Promise<Loaded> => {
  if (wrkVersion === undefined) throw new Error('wrk is not installed (Debian and Ubuntu: wrk)')
  const file = join(folder, `load-${new URL(workload.url).port}.lua`)
  await writeFile(`${file}.requests`, headLines(workload))
  await writeFile(file, sendInTurn(`${file}.requests`) + printResult)
  const args = ['-t1', `-c${atOnce}`, `-d${seconds}s`, '--latency', '-s', file, workload.url]
  const line = (await outputOf(...onCores(loadCores, 'wrk', args)))
    .split('\n')
    .find(one => one.startsWith('{'))
  if (line === undefined) throw new Error('wrk printed no result')
  return JSON.parse(line) as Loaded
}
