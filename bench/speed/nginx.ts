// nginx with Lua and Redis, with the gateway's guarantees: one EVALSHA per request looks up the hash of the key and takes
// one unit of its day exactly; the body comes from a cache in memory, with the same headers. Also nginx with its own cache
// and nothing else, as the ceiling.

import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import type { Scope } from '../../test/scenarios/set-up.ts'
import { freePort } from '../../test/support/redis-server.ts'
import { until } from '../../test/support/until.ts'
import {
  type Absent,
  type Contender,
  countersByHeader,
  expectBody,
  get,
  limit,
  path,
  type World,
  withoutRedis,
} from './contender.ts'
import { serverCores, spawnPinned } from './pinned.ts'

const key = 'nginx-key-of-the-bench'
const modules = ['ndk_http_module', 'ngx_http_lua_module'].map(name => `/usr/lib/nginx/modules/${name}.so`)

const versionText = spawnSync('nginx', ['-v']).stderr?.toString() ?? ''
export const nginxVersion = /nginx\/(\S+)/.exec(versionText)?.[1]

const whyAbsent = (): string | undefined => {
  if (nginxVersion === undefined)
    return 'nginx is not installed (Debian and Ubuntu: nginx libnginx-mod-http-lua)'
  const missing = modules.find(file => !existsSync(file))
  return missing && `nginx has no Lua, ${missing} is missing (Debian and Ubuntu: libnginx-mod-http-lua)`
}

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
-- In the worker's own memory, which measured faster than a shared dictionary and nginx's cache on disk.
local weather = {}
local passed = { "content-type", "content-language", "etag", "last-modified", "cache-control", "cache-status", "vary" }
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
  headers["x-ratelimit-limit"] = limit
  headers["x-ratelimit-remaining"] = math.max(0, limit - used)
  headers["x-ratelimit-reset"] = ends
  headers["x-request-id"] = ngx.var.request_id
  if used > limit then return ngx.exit(429) end
  local uri = ngx.var.request_uri
  local held = weather[uri]
  if not held or held.ends < ngx.now() then
    local fetched = ngx.location.capture("/origin" .. uri)
    if fetched.status ~= 200 then return ngx.exit(502) end
    local given = {}
    for name, value in pairs(fetched.header) do given[name:lower()] = value end
    held = { body = fetched.body, headers = {}, ends = ngx.now() + 3600 }
    for i = 1, #passed do held.headers[i] = given[passed[i]] end
    weather[uri] = held
  end
  for i = 1, #passed do headers[passed[i]] = held.headers[i] end
  headers["content-length"] = #held.body
  ngx.print(held.body)
end
return answer
`

const configOf = (folder: string, port: number, openPort: number, origin: string): string => `
${modules.map(file => `load_module ${file};`).join('\n')}
${process.getuid?.() === 0 ? '# Else the worker would be somebody who may not read this folder.\nuser root;' : ''}
daemon off;
worker_processes 1;
pid ${folder}/nginx.pid;
error_log ${folder}/error.log error;
events { worker_connections 1024; }
http {
  access_log off;
  keepalive_requests 1000000000;
  client_body_temp_path ${folder}/body;
  proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi;
  scgi_temp_path ${folder}/scgi;
  lua_package_path "${folder}/?.lua;;";
  proxy_cache_path ${folder}/cache keys_zone=open:8m;
  server {
    listen 127.0.0.1:${port};
    location / { content_by_lua_block { require("answer")() } }
    location /origin/ { internal; proxy_pass ${origin}/; }
  }
  server {
    listen 127.0.0.1:${openPort};
    location / {
      proxy_pass ${origin};
      proxy_cache open;
      proxy_cache_valid 200 1h;
      proxy_ignore_headers cache-control;
    }
  }
}
`

export const startNginx = async (scope: Scope, world: World): Promise<(Contender | Absent)[]> => {
  const metered = { id: 'nginx', name: 'nginx + Lua + Redis at the same guarantees' }
  const open = { id: 'nginx-open', name: 'nginx with its cache alone: no key, no count (a ceiling)' }
  const absent = whyAbsent()
  const { redisUrl } = world
  if (redisUrl === undefined) return [metered, open].map(one => ({ ...one, absent: withoutRedis }))
  if (absent) return [metered, open].map(one => ({ ...one, absent }))

  const redis = new Redis(redisUrl)
  const hash = createHash('sha256').update(key).digest()
  await redis.hset(Buffer.concat([Buffer.from('key:'), hash]), 'limit', String(limit))
  const sha = String(await redis.script('LOAD', takeUnit))
  await redis.quit()

  const folder = join(world.folder, 'nginx')
  await mkdir(folder)
  const [port, openPort] = [await freePort(), await freePort()]
  await writeFile(join(folder, 'answer.lua'), luaOf(new URL(redisUrl).port, sha))
  await writeFile(join(folder, 'nginx.conf'), configOf(folder, port, openPort, world.originUrl))
  const command: [string, ...string[]] = ['nginx', '-p', folder, '-c', join(folder, 'nginx.conf')]
  const { child } = spawnPinned(scope, folder, serverCores[0], command)
  const [base, openBase] = [`http://127.0.0.1:${port}`, `http://127.0.0.1:${openPort}`]
  const send = (url: string, given = key) => get(url + path, { 'x-api-key': given })
  await until(
    'nginx answers',
    async () => {
      await send(openBase)
      return true
    },
    10_000,
  )

  const reference = await world.reference()
  const ours = Object.keys(reference.headers).filter(name => !['connection', 'keep-alive'].includes(name))
  return [
    {
      ...metered,
      pid: child.pid ?? 0,
      workload: async () => ({ url: base, paths: [path], keys: [key] }),
      check: async () => {
        if ((await send(base, 'another')).status !== 401) throw new Error('a key that is unknown was let in')
        const answer = await send(base)
        expectBody(answer, world.body)
        const missing = ours.filter(name => answer.headers[name] === undefined)
        if (missing.length > 0) throw new Error(`headers are missing: ${missing.join(', ')}`)
      },
      counters: countersByHeader(base + path, key),
    },
    {
      ...open,
      pid: child.pid ?? 0,
      workload: async () => ({ url: openBase, paths: [path], keys: [] }),
      check: async () => expectBody(await send(openBase), world.body),
    },
  ]
}
