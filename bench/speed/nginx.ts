// nginx as a metering cache: one worker that checks the key by its hash and counts the day in one Redis command, then
// answers from its cache with the headers that the gateway sends. Also the cache alone, as the ceiling.

type Parts = {
  readonly folder: string
  readonly port: number
  /** Host and port of what is cached. */
  readonly upstream: string
  readonly redis: URL
  readonly bodyBytes: number
}

const script = `
local limit = redis.call('HGET', 'peer:key:' .. ARGV[1], 'limit')
if not limit then return -1 end
local id = redis.call('HGET', 'peer:key:' .. ARGV[1], 'id')
local key = 'peer:count:' .. id .. ':' .. ARGV[2]
local used = redis.call('INCR', key)
if used == 1 then redis.call('EXPIRE', key, 172800) end
return tonumber(limit) - used`

export const nginxConfig = ({ folder, port, upstream, redis, bodyBytes }: Parts): string => `
load_module /usr/lib/nginx/modules/ndk_http_module.so;
load_module /usr/lib/nginx/modules/ngx_http_lua_module.so;
worker_processes 1;
pid ${folder}/nginx.pid;
error_log ${folder}/nginx-error.log warn;
events { worker_connections 1024; }
http {
  access_log off;
  client_body_temp_path ${folder}/nginx-body;
  proxy_temp_path ${folder}/nginx-proxy;
  fastcgi_temp_path ${folder}/nginx-fastcgi;
  uwsgi_temp_path ${folder}/nginx-uwsgi;
  scgi_temp_path ${folder}/nginx-scgi;
  keepalive_requests 1000000000;
  proxy_cache_path ${folder}/nginx-cache keys_zone=weather:10m;
  proxy_cache_valid 200 1h;
  proxy_buffers 8 ${Math.ceil(bodyBytes / 1024)}k;
  lua_package_path "/usr/share/lua/5.1/?.lua;;";

  init_by_lua_block {
    local ffi = require 'ffi'
    ffi.cdef 'unsigned char *SHA256(const unsigned char *d, size_t n, unsigned char *md);'
    local digest = ffi.new('unsigned char[32]')
    local script = [[${script}]]

    local function sha256(text)
      ffi.C.SHA256(text, #text, digest)
      return (string.gsub(ffi.string(digest, 32), '.', function(byte)
        return string.format('%02x', string.byte(byte))
      end))
    end

    local function command(...)
      local parts = { '*', select('#', ...), '\\r\\n' }
      for i = 1, select('#', ...) do
        local part = tostring((select(i, ...)))
        parts[#parts + 1] = '$' .. #part .. '\\r\\n' .. part .. '\\r\\n'
      end
      return table.concat(parts)
    end

    -- The hex of a hash is looked up by its bytes, so that it is written once per key and worker.
    local hashes = {}
    local scriptName

    local function ask(socket, ...)
      socket:send(command(...))
      local line = socket:receive()
      return line
    end

    function meter()
      local key = ngx.var.http_x_api_key
      if not key then return ngx.exit(401) end
      local hash = hashes[key] or sha256(key)
      hashes[key] = hash
      local socket = ngx.socket.tcp()
      socket:settimeout(1000)
      if not socket:connect('${redis.hostname}', ${redis.port}) then return ngx.exit(500) end
      if not scriptName then
        socket:send(command('SCRIPT', 'LOAD', script))
        socket:receive()
        scriptName = socket:receive()
      end
      local line = ask(socket, 'EVALSHA', scriptName, 0, hash, string.sub(ngx.utctime(), 1, 10))
      socket:setkeepalive(10000, 64)
      local remaining = line and tonumber(string.sub(line, 2))
      if not remaining then return ngx.exit(500) end
      if remaining < 0 then return ngx.exit(remaining == -1 and 401 or 429) end
      ngx.header['x-ratelimit-limit'] = 1000000000
      ngx.header['x-ratelimit-remaining'] = remaining
      ngx.header['x-ratelimit-reset'] = 1795284000
      ngx.header['x-request-id'] = ngx.var.request_id
      ngx.header['cache-control'] = 'private, max-age=412'
      ngx.header['age'] = 37
      ngx.header['vary'] = 'accept-encoding'
      ngx.header['content-language'] = 'en'
      ngx.header['etag'] = 'W/"abcdefghijklmnopqrstuv"'
    end
  }

  server {
    listen 127.0.0.1:${port};
    location = / { return 200 'here'; }
    location /open/ {
      proxy_cache weather;
      proxy_pass http://${upstream}/;
    }
    location / {
      access_by_lua_block { meter() }
      proxy_cache weather;
      proxy_pass http://${upstream};
      add_header cache-status 'nginx; hit; detail=memory';
      add_header last-modified 'Sat, 21 Nov 2026 06:00:00 GMT';
    }
  }
}
`
