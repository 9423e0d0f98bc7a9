// nginx with Lua and Redis, with the gateway's guarantees: one EVALSHA per request looks up the hash of the key and takes
// one unit of its day exactly; the body comes from a cache in memory, plain or as gzip, with the same headers, or a 304 in
// its place. One worker, with its access log and without; its origin is a gateway that receives no load.

import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import '../../test/support/programs.ts'
import { freePort } from '../../test/support/listening.ts'
import { until } from '../../test/support/until.ts'
import type { Subject } from '../rounds.ts'
import { sum } from '../row.ts'
import { serverCore, spawnPinned } from '../tools/processes.ts'
import { get, path, type World } from '../tools/world.ts'
import type { Traffic } from './gateway.ts'
import { type CertificateFiles, limit } from './others.ts'

const modules = ['ndk_http_module', 'ngx_http_lua_module'].map(name => `/usr/lib/nginx/modules/${name}.so`)

// Key and count in one step, by the server's clock. Dhaka has a fixed UTC offset.
const takeUnit = `
local limit = redis.call('HGET', KEYS[1], 'limit')
if not limit then return { 0, 0, 0 } end
local day = math.floor((tonumber(redis.call('TIME')[1]) + 21600) / 86400)
local ends = (day + 1) * 86400 - 21600
local name = KEYS[1] .. ':' .. day
local used = redis.call('INCR', name)
if used == 1 then redis.call('EXPIREAT', name, ends + 86400) end
return { tonumber(limit), used, ends }`

const luaOf = (redisPort: string, sha: string): string => `
local ffi = require "ffi"
ffi.cdef "unsigned char *SHA256(const unsigned char *d, size_t n, unsigned char *md);"
local digest = ffi.new("unsigned char[32]")
-- By URL, in the worker's own memory, which measured faster than a shared dictionary and nginx's cache on disk.
local plain, zipped = {}, {}
local passed = { "content-type", "content-language", "content-encoding", "etag", "last-modified", "cache-control",
  "cache-status", "vary" }
local command = "*4\\r\\n$7\\r\\nEVALSHA\\r\\n$40\\r\\n${sha}\\r\\n$1\\r\\n1\\r\\n$36\\r\\nkey:"

local function take(hash)
  local redis = ngx.socket.tcp()
  if not redis:connect("127.0.0.1", ${redisPort}, { pool_size = 256 }) then return end
  redis:send(command .. hash .. "\\r\\n")
  if redis:receive() ~= "*3" then return end
  local limit, used, ends = redis:receive(), redis:receive(), redis:receive()
  redis:setkeepalive(60000, 256)
  return tonumber(limit:sub(2)), tonumber(used:sub(2)), ends:sub(2)
end

local function answer()
  local key = ngx.var.http_x_api_key
  if not key then return ngx.exit(401) end
  ffi.C.SHA256(key, #key, digest)
  local limit, used, ends = take(ffi.string(digest, 32))
  if not limit then return ngx.exit(500) end
  if limit == 0 then return ngx.exit(401) end
  local headers = ngx.header
  local remaining = math.max(0, limit - used)
  headers["x-ratelimit-limit"] = limit
  headers["x-ratelimit-remaining"] = remaining
  headers["x-ratelimit-reset"] = ends
  headers["ratelimit-policy"] = '"daily";q=' .. limit .. ';w=86400'
  headers["ratelimit"] = '"daily";r=' .. remaining .. ';t=' .. math.ceil(ends - ngx.now())
  headers["x-request-id"] = ngx.var.request_id
  if used > limit then return ngx.exit(429) end
  local uri = ngx.var.request_uri
  local accepts = ngx.var.http_accept_encoding
  local takes_gzip = accepts and accepts:find("gzip", 1, true)
  local weather = takes_gzip and zipped or plain
  local held = weather[uri]
  if not held or held.ends < ngx.now() then
    local fetched = ngx.location.capture((takes_gzip and "/origin-gzip" or "/origin") .. uri)
    if fetched.status ~= 200 then return ngx.exit(502) end
    local given = {}
    for name, value in pairs(fetched.header) do given[name:lower()] = value end
    local fresh_for = tonumber((given["cache-control"] or ""):match("max%-age=(%d+)")) or 0
    held = { body = fetched.body, headers = {}, etag = given.etag, ends = ngx.now() + fresh_for }
    for i = 1, #passed do held.headers[i] = given[passed[i]] end
    weather[uri] = held
  end
  local is_known = held.etag and ngx.var.http_if_none_match == held.etag
  for i = 1, #passed do
    if not (is_known and passed[i] == "content-encoding") then headers[passed[i]] = held.headers[i] end
  end
  if is_known then
    ngx.status = 304
    ngx.send_headers()
    return
  end
  headers["content-length"] = #held.body
  ngx.print(held.body)
end
return answer
`

type Origin = World['origin']

type Config = {
  readonly port: number
  readonly isLogged: boolean
  readonly tls?: CertificateFiles | undefined
}

const configOf = (folder: string, { url, key }: Origin, { port, isLogged, tls }: Config): string => `
${modules.map(file => `load_module ${file};`).join('\n')}
${process.getuid?.() === 0 ? '# Else the worker would be somebody who may not read this folder.\nuser root;' : ''}
daemon off;
worker_processes 1;
pid ${folder}/nginx.pid;
error_log ${folder}/error.log error;
events { worker_connections 1024; }
http {
  access_log off;
  log_format one '$remote_addr [$time_iso8601] $request_method $request_uri $status $body_bytes_sent $request_time $request_id';
  keepalive_requests 1000000000;
  ${tls ? `ssl_certificate ${tls.cert}; ssl_certificate_key ${tls.key}; ssl_protocols TLSv1.3;` : ''}
  ${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(name => `${name}_temp_path ${folder}/${name};`).join(' ')}
  lua_package_path "${folder}/?.lua;;";
  server {
    listen 127.0.0.1:${port}${tls ? ' ssl' : ''};
    ${isLogged ? `access_log ${join(folder, 'access.log')} one buffer=64k flush=1s;` : ''}
    location / { content_by_lua_block { require("answer")() } }
    location /origin/ { internal; proxy_set_header x-api-key "${key}"; proxy_set_header if-none-match ""; proxy_set_header accept-encoding ""; proxy_pass ${url}/; }
    location /origin-gzip/ { internal; proxy_set_header x-api-key "${key}"; proxy_set_header if-none-match ""; proxy_set_header accept-encoding gzip; proxy_pass ${url}/; }
  }
}
`

type NginxOptions = {
  readonly keys: readonly string[]
  readonly traffic: Traffic
  readonly isLogged?: boolean
  readonly tls?: CertificateFiles
}

let started = 0

/** nginx that knows these keys. @throws Error, when it starts, where it or its Lua is not installed */
export const nginxSubject = (
  world: World,
  { keys, traffic, isLogged = false, tls }: NginxOptions,
): Subject => ({
  id: 'nginx',
  name: `nginx + Lua${isLogged ? ', log' : ''}`,
  usesRedis: true,
  start: async scope => {
    if (!modules.every(existsSync)) throw new Error(`nginx with Lua is not installed: ${modules.join(', ')}`)
    const redis = new Redis(world.redisUrl)
    scope.teardown(() => redis.quit())
    const names = keys.map(key =>
      Buffer.concat([Buffer.from('key:'), createHash('sha256').update(key).digest()]),
    )
    for (const one of names) await redis.hset(one, 'limit', String(limit))
    const sha = String(await redis.script('LOAD', takeUnit))

    const folder = join(world.folder, `nginx-${started++}`)
    await mkdir(folder)
    const port = await freePort()
    await writeFile(join(folder, 'answer.lua'), luaOf(new URL(world.redisUrl).port, sha))
    await writeFile(join(folder, 'nginx.conf'), configOf(folder, world.origin, { port, isLogged, tls }))
    const command = ['nginx', '-p', folder, '-c', join(folder, 'nginx.conf')] as const
    const { child } = spawnPinned(scope, folder, serverCore, [...command])
    const url = `http${tls ? 's' : ''}://127.0.0.1:${port}`
    await until('nginx answers', () => get(url + path).then(() => true))
    const sent = await traffic(url, keys)
    return {
      pid: child.pid ?? 0,
      workload: sent.workload,
      check: async () => {
        await sent.check()
        const [answer, reference] = [
          await get(url + path, { 'x-api-key': keys[0] ?? '' }),
          await world.reference(),
        ]
        const missing = Object.keys(reference.headers).filter(
          one => !['connection', 'keep-alive'].includes(one) && answer.headers[one] === undefined,
        )
        if (missing.length > 0) throw new Error(`headers are missing: ${missing.join(', ')}`)
      },
      counted: async () => {
        // The day of the script, by the same clock.
        const [now] = await redis.time()
        const day = Math.floor((Number(now) + 21_600) / 86_400)
        const ofDay = names.map(one => Buffer.concat([one, Buffer.from(`:${day}`)]))
        return sum((await redis.mget(ofDay)).map(Number))
      },
    }
  },
})
