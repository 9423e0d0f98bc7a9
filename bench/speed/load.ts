// The load: kept connections that send the next request on the response to the last, for some seconds, from wrk or, where
// it is not installed, from loader.ts; or a TLS handshake for each request, from tls-loader.ts. Returns the number of responses,
// their latency, and how many were wrong.

import { spawnSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { outputOf } from './command-output.ts'
import { loadCores, onCores } from './pinned.ts'

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
  /** A new TLS connection for each request to the first path with the first key, in place of kept ones. */
  readonly handshakes?: Handshakes
}

export type Handshakes = {
  readonly kind: 'full' | 'resumed'
  /** The authority of the server's certificate, in PEM. */
  readonly caFile: string
  /** Every response has this body. */
  readonly bodyFile: string
}

export type Loaded = {
  readonly answers: number
  readonly seconds: number
  readonly p50: number
  readonly p99: number
  /** Responses of 400 and above, broken connections, and requests without a response in time. */
  readonly wrong: number
  /** With `handshakes`: connections that resumed a session. */
  readonly resumed?: number
}

const wrkVersion = spawnSync('wrk', ['--version']).stdout?.toString()
const hasWrk = wrkVersion !== undefined && wrkVersion !== ''

export const loader = hasWrk
  ? `wrk ${/^wrk (?:debian\/)?(\S+)/.exec(wrkVersion)?.[1] ?? ''}`
  : 'a loader of our own, because wrk is not installed (Debian and Ubuntu: wrk), so that rows faster than it are bounded by it'

const requestsIn = ({ paths, keys, headersInTurn = [] }: Workload): number =>
  Math.max(paths.length, keys.length, headersInTurn.length)

/** The head of each request on a line of its own, with tabs for its line breaks. */
const headLines = (workload: Workload): string => {
  const { url, paths, keys, headers = {}, headersInTurn = [] } = workload
  const { host } = new URL(url)
  const line = ([name, value]: [string, string]): string => `\t${name}: ${value}`
  const ofAll = `\thost: ${host}${Object.entries(headers).map(line).join('')}`
  return Array.from({ length: requestsIn(workload) }, (_, i) => {
    const key = keys.length > 0 ? `\tx-api-key: ${keys[i % keys.length]}` : ''
    const own = Object.entries(headersInTurn[i % headersInTurn.length] ?? {})
    return `GET ${paths[i % paths.length]} HTTP/1.1${ofAll}${key}${own.map(line).join('')}\n`
  }).join('')
}

const quoted = (text: string): string => JSON.stringify(text)

/** Lua for one request, which wrk itself repeats. */
const oneRequest = ({ paths: [path = '/'], keys: [key], headers = {} }: Workload): string =>
  `wrk.path = ${quoted(path)}\n${Object.entries(
    key === undefined ? headers : { ...headers, 'x-api-key': key },
  )
    .map(([name, value]) => `wrk.headers[${quoted(name)}] = ${quoted(value)}\n`)
    .join('')}`

/** Lua for many requests in turn: from a file, because a script may not hold hundreds of thousands of texts. */
const manyRequests = (linesFile: string): string => `local requests = {}
local last = 0
function init()
  for line in io.lines(${quoted(linesFile)}) do
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

const writeScript = async (file: string, workload: Workload): Promise<void> => {
  const isOne = requestsIn(workload) === 1 && workload.headersInTurn === undefined
  if (!isOne) await writeFile(`${file}.requests`, headLines(workload))
  await writeFile(file, (isOne ? oneRequest(workload) : manyRequests(`${file}.requests`)) + printResult)
}

/** @param on the cores of the load */
export const load = async (
  folder: string,
  workload: Workload,
  seconds: number,
  { on = loadCores, atOnce = connections } = {},
): Promise<Loaded> => {
  const isWrk = hasWrk && !workload.handshakes
  const file = join(folder, `load-${new URL(workload.url).port}.${isWrk ? 'lua' : 'json'}`)
  if (isWrk) await writeScript(file, workload)
  else await writeFile(file, JSON.stringify({ ...workload, seconds, atOnce }))
  const own = workload.handshakes
    ? new URL('tls-loader.ts', import.meta.url)
    : new URL('loader.ts', import.meta.url)
  const [command, args] = isWrk
    ? onCores(on, 'wrk', ['-t1', `-c${atOnce}`, `-d${seconds}s`, '--latency', '-s', file, workload.url])
    : onCores(on, process.execPath, [own.pathname, file])
  const line = (await outputOf(command, args)).split('\n').find(one => one.startsWith('{'))
  if (line === undefined) throw new Error(`${isWrk ? loader : own.pathname} printed nothing`)
  return JSON.parse(line) as Loaded
}
