// The load: kept connections that send the next request on the response to the last, for some seconds, from wrk or, where
// it is not installed, from loader.ts. Returns the number of responses, their latency, and how many were wrong.

import { execFile, spawnSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { loadCores, onCores } from './pinned.ts'

export const connections = 64

export type Workload = {
  readonly url: string
  /** Requested in turn, each with all headers. */
  readonly paths: readonly string[]
  /** Sent in turn as `x-api-key`; empty where nobody checks it. */
  readonly keys: readonly string[]
  readonly headers?: Readonly<Record<string, string>>
}

export type Loaded = {
  readonly answers: number
  readonly seconds: number
  readonly p50: number
  readonly p99: number
  /** Responses of 400 and above, broken connections, and requests without a response in time. */
  readonly wrong: number
}

const wrkVersion = spawnSync('wrk', ['--version']).stdout?.toString()
const hasWrk = wrkVersion !== undefined && wrkVersion !== ''

export const loader = hasWrk
  ? `wrk ${/^wrk (?:debian\/)?(\S+)/.exec(wrkVersion)?.[1] ?? ''}`
  : 'a loader of our own, because wrk is not installed (Debian and Ubuntu: wrk), so that rows faster than it are bounded by it'

/** The Lua script for wrk, whose latencies are in microseconds. */
const script = ({ paths, keys, headers = {} }: Workload): string => {
  const quoted = (text: string): string => JSON.stringify(text)
  const many = paths.length * Math.max(1, keys.length) > 1
  return `${Object.entries(headers)
    .map(([name, value]) => `wrk.headers[${quoted(name)}] = ${quoted(value)}\n`)
    .join('')}
local paths = { ${paths.map(quoted).join(', ')} }
local keys = { ${keys.map(quoted).join(', ')} }
wrk.path = paths[1]
wrk.headers["x-api-key"] = keys[1]
${
  many
    ? `local requests = {}
local last = 0
function init()
  for i = 1, math.max(#paths, #keys) do
    if #keys > 0 then wrk.headers["x-api-key"] = keys[(i - 1) % #keys + 1] end
    requests[i] = wrk.format("GET", paths[(i - 1) % #paths + 1])
  end
end
function request()
  last = last % #requests + 1
  return requests[last]
end`
    : ''
}
function done(summary, latency)
  local e = summary.errors
  print(string.format('{"answers":%d,"seconds":%f,"p50":%f,"p99":%f,"wrong":%d}', summary.requests,
    summary.duration / 1e6, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
    e.status + e.connect + e.read + e.write + e.timeout))
end
`
}

const output = (command: string, args: readonly string[]): Promise<string> =>
  new Promise((resolve, reject) => {
    execFile(command, args, (error, stdout, stderr) =>
      error ? reject(new Error(`${command}: ${stderr || stdout || error.message}`)) : resolve(stdout),
    )
  })

/** @param on the cores of the load */
export const load = async (
  folder: string,
  workload: Workload,
  seconds: number,
  { on = loadCores, atOnce = connections } = {},
): Promise<Loaded> => {
  const file = join(folder, `load-${new URL(workload.url).port}.${hasWrk ? 'lua' : 'json'}`)
  await writeFile(file, hasWrk ? script(workload) : JSON.stringify({ ...workload, seconds, atOnce }))
  const [command, args] = hasWrk
    ? onCores(on, 'wrk', ['-t1', `-c${atOnce}`, `-d${seconds}s`, '--latency', '-s', file, workload.url])
    : onCores(on, process.execPath, [new URL('loader.ts', import.meta.url).pathname, file])
  const line = (await output(command, args)).split('\n').find(one => one.startsWith('{'))
  if (line === undefined) throw new Error(`${loader} printed nothing`)
  return JSON.parse(line) as Loaded
}
