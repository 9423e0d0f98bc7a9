// Without this, a mistyped command could begin its work, or end with a stack trace or a wrong exit code.

import { type StdioOptions, spawnSync } from 'node:child_process'
import { closeSync, existsSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { basename, join } from 'node:path'
import t, { type Test } from 'tap'
import { createKey } from '../scenarios/set-up.ts'
import { listenOn } from '../support/listening.ts'
import { checkMistakes, type Mistake, runCommands } from '../support/printed.ts'
import { cleanEnv, product, runCommand } from '../support/process.ts'
import { ok, startTarget } from '../tools/load/replay/scripted-target.ts'
import { arriving, linesOf } from '../tools/load/replay/send-some.ts'

// Longer than a quoted value is shown: what is wrong stands at the end of a path.
const name = 'a-folder-as-long-as-those-of-machines-that-build-and-test'
const ids = 'subscriber,tier,external_id,limit\nA,free,key-1,1\n'
const outer = t.testdir({ [name]: { empty: '', hello: 'hello\n', folder: {}, 'ids.csv': ids } })
const folder = join(outer, name)
const at = (name: string): string => join(folder, name)
const file = (name: string, ...given: Parameters<typeof arriving>): string => {
  writeFileSync(at(name), linesOf(arriving(...given)))
  return at(name)
}
const traffic = file('traffic.ndjson', [0, 1, 2])
const keyed = file('keyed.ndjson', [0], { key: 'key-1' })
const posts = file('posts.ndjson', [0], { method: 'POST' })
const nowhere = 'http://127.0.0.1:1'

const env = { ABOHAWA_STORE__PATH: at('store.db'), ABOHAWA_OPS__PORT: '1' }
await createKey(env)

/** Mistakes of one command, whose words come first. */
const of = (command: string, ...rest: (readonly [string, number, RegExp])[]): Mistake[] =>
  rest.map(([line, ...expected]): Mistake => [`${command} ${line}`, ...expected])
const check = (t: Test, ...mistakes: readonly Mistake[]) => checkMistakes(t, mistakes, env)

const tiers = /--tier must be one of free, starter, business, enterprise, .*got "gold"/
const wholeNumber = (bounds: string) => new RegExp(`must be a whole number from ${bounds}.*, got "`)
const noUnit = /has no unit: add ms, s, m, h or d/
const gatewayAddress = /--gateway must be an address such as .*, got "here"/
const cellOrPlace = 'must be a point such as 23\\.81,90\\.41 or a place such as'

t.test('commands in general, and those of processes', async t => {
  await check(
    t,
    ['fly', 2, /unknown command 'fly'/],
    ['serve --fast', 2, /unknown option '--fast'/],
    ['provider --port x', 2, /--port must be a whole number from 0 to 65535, got "x"/],
    ['provider --latency 5', 2, /'5' is invalid/],
    ['provider --limits some', 2, /must be one of none, free, got "some"/],
    ['demo --upstream nowhere', 2, /--upstream must be a URL such as .*, got nowhere/],
    ['doctor --url here', 2, /--url must be an address such as .*, got "here"/],
    ['catalogue check /nowhere.json', 1, /\/nowhere\.json/],
    [`catalogue build --from /nowhere.csv --out ${at('x.json')}`, 1, /\/nowhere\.csv/],
    ['store copy --to http://x', 2, /--to must be a redis:\/\/ or rediss:\/\/ URL .*, got "http:\/\/x"/],
  )
  // In a process of its own, as its users start it.
  t.match(await runCommand(['serve', '--fast']), { code: 2, stdout: '', stderr: /unknown option '--fast'/ })
})

t.test('keys and subscribers', async t => {
  const tooMany = /--external-id can't be combined with --count/
  await check(
    t,
    ['keys list --config /nowhere.yaml', 1, /\/nowhere\.yaml/],
    ['keys show', 2, /missing required argument 'id'/],
    ['keys show key_9', 1, /there is no key "key_9"/],
    ['keys revoke key_9', 1, /there is no key "key_9"/],
    ['keys show svc_live_secret', 1, /the id must begin with key_, got an API key/],
    ['keys usage key_1 --days 0', 2, wholeNumber('1 to 400')],
    ['keys usage key_1 --csv --json', 2, /'--csv' cannot be used with option '--json'/],
    ['keys rotate key_1 --overlap 24', 2, noUnit],
    ['keys rotate key_1 --overlap 104000000d', 2, /--overlap must be at most 36500d/],
    ['keys set key_1', 2, /nothing to change: give at least one of --tier, --limit, --expires, --origins, /],
    ['keys set key_1 --tier gold', 2, tiers],
    ['keys set key_1 --limit 0', 2, /the limit must be an integer from 1 to 999999999999, got "0"/],
    [
      'keys set key_1 --origins a.example',
      2,
      /the origin must be an origin as browsers send it, .*, got "a\.example"/,
    ],
    ['keys set key_1 --endpoints rain', 2, /the endpoint must be one of weather, forecast, .*, got "rain"/],
    ['keys set key_1 --per-minute 0', 2, /per-minute must be none or an integer from 1 to 1000000, got "0"/],
    ['keys set key_9 --limit 5', 1, /there is no key "key_9"/],
    ['subscribers revoke Nobody', 1, /there is no subscriber "Nobody"/],
    ['keys create', 2, /--subscriber is required, unless --from names a file/],
    [['keys', 'create', '--subscriber', ' ', '--tier', 'free'], 1, /name must be 1 to 100 char.*, got " "/],
    ['keys create --subscriber A', 2, /--tier or --test is required/],
    ['keys create --subscriber A --tier gold', 2, tiers],
    ...of(
      'keys create --subscriber A --tier free',
      ['--count 0', 2, wholeNumber('1 to 10000')],
      ['--count 10001', 2, /, got "10001"/],
      ['--count 2 --external-id a', 2, tooMany],
      ['--limit x', 2, /the limit must be an integer .*, got "x"/],
      ['--expires x', 1, /expires must be never, a day .*, got "x"/],
      ['--addresses 10.0.0.0/33', 2, /the address must be an IP address .*, got "10\.0\.0\.0\/33"/],
      ['--burst 5', 1, /burst requires per-second/],
      ['--csv --json', 2, /'--csv' cannot be used with option '--json'/],
      ['--apply', 2, /--apply requires --from/],
    ),
    ...of(
      `keys create --from ${at('ids.csv')}`,
      ['--tier free', 2, /'--from <csv>' cannot be used with option '--tier <name>'/],
      ['--origins https://a.example', 2, /cannot be used with option '--origins <list>'/],
      [
        '--out /nowhere/x',
        1,
        /--out is "\/nowhere\/x", which can't be written: "\/nowhere" is a folder that is missing/,
      ],
    ),
    ['keys create --from /nowhere.csv', 1, /--from is \/nowhere\.csv, which can't be read: ENOENT/],
  )
})

t.test('no output replaces the store, a configuration or an input, with --force neither', async t => {
  const config = at('gateway.yaml')
  const secret = at('secret')
  writeFileSync(secret, 'key-of-a-fallback')
  writeFileSync(config, `provider: { fallbacks: [{ baseUrl: http://b, apiKeyFile: "${secret}" }] }`)
  const keys = at('ids.csv')
  const kept = (path: string, reason: string): readonly [string, number, RegExp] => [
    path,
    1,
    new RegExp(`is ".*${basename(path)}", which ${reason}; choose another file`),
  ]
  const always = [
    ...['', '-wal', '-shm'].map(end => kept(at(`store.db${end}`), 'belongs to the store')),
    ...[config, secret].map(path => kept(path, 'belongs to the configuration')),
  ]
  const forced = `--force --config ${config}`
  const send = `--target ${nowhere} --keys ${keys}`
  const before = readFileSync(at('store.db'))
  await check(
    t,
    ...of(`store export ${forced} --file`, ...always),
    ...of(`traffic generate ${forced} --rate 9 --duration 9s --out`, ...always),
    ...of(`traffic import ${traffic} ${forced} --out`, ...always, kept(traffic, 'the command reads')),
    ...['--requests', '--bodies'].flatMap(option =>
      of(
        `replay ${traffic} ${send} ${forced} ${option}`,
        ...always,
        kept(traffic, 'the command reads'),
        kept(keys, 'the command reads'),
      ),
    ),
    [
      `replay ${traffic} ${send} --requests ${at('a')} --bodies ${at('a')}`,
      1,
      /is ".*a", which is written by another option/,
    ],
    ...of(`keys create --config ${config} --from ${keys} --out`, ...always, kept(keys, 'the command reads')),
    ...of(
      `catalogue build --config ${config} --from ${keys} --out`,
      ...always,
      kept(keys, 'the command reads'),
    ),
    [`store copy --to ${at('store.db-wal')}`, 1, /--to is .* which belongs to the store/],
  )
  t.ok(before.equals(readFileSync(at('store.db'))))
  // Named so that it is an output too.
  for (const name of ['mine.json', 'mine.html']) writeFileSync(at(name), 'mine')
  await check(
    t,
    [
      `replay report ${at('mine.json')} --out ${at('mine.html')}`,
      1,
      /mine\.html", which exists; --force replaces it/,
    ],
    [
      `replay ${traffic} ${send} --out ${at('mine.json')}`,
      1,
      /mine\.json", which exists; --force replaces it/,
    ],
    [`whatif ${traffic} --out ${at('mine.html')}`, 1, /mine\.html", which exists; --force replaces it/],
    [`rehearse ${traffic} --out ${at('mine.html')}`, 1, /mine\.html", which exists; --force replaces it/],
    [`store export --file ${at('mine.json')}`, 1, /mine\.json", which exists; --force replaces it/],
  )
})

t.test('the cache', async t => {
  const noPlace = new RegExp(cellOrPlace)
  await check(
    t,
    ...of(
      'cache show',
      ['', 2, /missing required argument 'target'/],
      ['dhaka', 2, new RegExp(`the target ${cellOrPlace} district/3026, got "dhaka"`)],
      ['all', 2, /the target must be a point .*, got "all"/],
      ['23 90', 2, /too many arguments/],
      ['-23.5,90', 2, /-23\.5,90 looks like an option; put `--` before an argument/],
      ['-- -23.5,90', 1, /latitude must be from 20 to 27 \(Bangladesh\), got -23\.5/],
      ['district/9', 1, /the district "9" was not found or is not published/],
      ['district/3026 --gateway here', 2, gatewayAddress],
    ),
    ...of(
      'cache purge',
      ['', 2, /missing required argument 'target'/],
      ['everything', 2, /the target must be all, a point such as .*, got "everything"/],
      ['-24,90,23,91', 2, /-24,90,23,91 looks like an option; put `--` before an argument/],
      ['all --soft', 2, /unknown option '--soft'/],
      ['23.51,90.01,23.52,90.02', 1, /a box must hold the centre of a grid cell within /],
      ['all --area', 2, /the area must be a place such as district\/3026, got "all"/],
      ['district/9 --area --dry-run', 1, /the district "9" was not found or is not published/],
      ['union/1', 1, /the union "1" was not found or is not published/],
    ),
    ...of(
      'cache warm --force',
      ['', 2, noPlace],
      ['all', 2, noPlace],
      ['23,90 --dry-run', 2, /--force reloads one cell: it can't be combined with --top or --dry-run/],
      ['district/3026 --gateway here', 2, gatewayAddress],
      ['district/3026', 1, /nothing was loaded, because no gateway answered at .*; without --force this/],
    ),
  )
})

t.test('an option with one value is given once', async t => {
  const twice = (option: string) => new RegExp(`${option} can be given only once`)
  await check(
    t,
    [`whatif ${traffic} --out ${at('a.html')} --out ${at('b.html')}`, 2, twice('--out')],
    [`rehearse ${traffic} --provider-limits none --provider-limits free`, 2, twice('--provider-limits')],
    [`replay report ${traffic} --out ${at('a.html')} --out ${at('a.html')}`, 2, twice('--out')],
    [`replay ${traffic} --target ${nowhere} --rate 5 --rate 50`, 2, twice('--rate')],
    [`traffic import ${traffic} --out ${at('a.ndjson')} --out ${at('b.ndjson')}`, 2, twice('--out')],
    ['traffic generate --seed 1 --seed 2', 2, twice('--seed')],
    ['keys create A --tier free --tier standard', 2, twice('--tier')],
    [`status --gateway ${nowhere} --gateway http://127.0.0.1:2`, 2, twice('--gateway')],
    // Those that collect are not meant.
    [`replay ${traffic} --target ${nowhere} --threshold p99<1s --threshold p50<1s`, 1, /can't be reached/],
    [`whatif ${traffic} --case banana --case cache.freshFor=1h`, 2, /--case must be .*"banana"/],
  )
  for (const name of ['a.html', 'b.html', 'a.ndjson']) t.notOk(existsSync(at(name)), name)
})

t.test('rehearse and whatif', async t => {
  const same = /server\.port can't be varied; give settings of/
  const both: [string, number, RegExp][] = [
    ['', 2, /missing required argument 'files'/],
    [at('none.ndjson'), 1, /none\.ndjson/],
    [at('empty'), 1, /no requests/],
    [`${traffic} --set cache.freshFoo=1h`, 2, /is not a known setting; did you mean cache\.freshFor\?/],
    [`${traffic} --case banana`, 2, /--case must be settings with a value each, .*, got "banana"/],
    [`${traffic} --set server.port=81,82`, 2, same],
    [`${traffic} --out ${at('x.txt')}`, 2, /--out must end in \.html.*, got ".*x\.txt"/],
    [`${traffic} --out ${at('no/x.html')}`, 1, /can't be written: ".*no" is a folder that is missing/],
    [`${traffic} --out ${at('empty/x.html')}`, 1, /can't be written: ".*empty" is no folder/],
  ]
  await check(
    t,
    ...of('rehearse', ...both),
    ...of(
      `rehearse ${traffic}`,
      ['--tier gold', 2, /--tier must be one of free, .*, got "gold"/],
      ['--parallel 0', 2, wholeNumber('1 to 1000')],
      ['--step 6s', 2, /--step must be a duration up to 5s, got "6s"/],
      ['--provider-limits some', 2, /must be one of none, free, got "some"/],
      ['--provider-runs gfs', 2, /must be one of ecmwf, none, got "gfs"/],
    ),
    ...of('whatif', ...both),
    ...of(
      `whatif ${traffic}`,
      ['--instances 0', 2, wholeNumber('1 to 64')],
      ['--threads two', 2, wholeNumber('1 to 256')],
      ['--warm-up 5', 2, noUnit],
      ['--warm-up 1h30m', 2, /--warm-up must be shorter than the traffic \(0ms\), got 90m/],
      ['--warm-up 1h', 2, /--warm-up must be shorter than the traffic \(0ms\), got 1h/],
      ['--format pcap', 2, /pcap/],
    ),
  )
  t.notOk(existsSync(at('x.txt')))
})

t.test('replay, before the first request', async t => {
  const target = await startTarget(t)
  const keys = /the traffic has 1 key ids; give --keys with .* --key .* or --without-keys/
  await check(
    t,
    [`replay ${traffic}`, 2, /--target is required, an address/],
    [
      `replay ${traffic} --target localhost`,
      2,
      /the target must be an address such as http.*, got "localhost"/,
    ],
    [`replay ${traffic} --target ${nowhere}/api/v1`, 2, /must not end in \/api\/v1/],
    [`replay ${traffic} --target ${nowhere}`, 1, /the target http:\/\/127\.0\.0\.1:1 can't be reached/],
    [`replay ${traffic} --target https://93.184.215.14`, 1, /--allow-remote/],
    [`replay ${at('empty')} --target ${target.url}`, 1, /there are no requests in .*empty/],
    // Durations of several parts and rates with a unit are no mistake.
    [`replay ${at('none')} --target ${nowhere} --rate 90/m --duration 2h20m --warm-up 1m30s`, 1, /none/],
    ...of(
      `replay ${keyed} --target ${target.url}`,
      ['', 2, keys],
      [`--key ${at('ids.csv')} --without-keys`, 2, /one of --keys, --key and --without-keys/],
      [`--keys ${at('ids.csv')}`, 1, /has ids but no keys; give the output of `abohawa keys create/],
    ),
    ...of(
      `replay ${traffic} --target ${target.url}`,
      ['--rate 5 --speed 2', 2, /--speed and --rate can't be combined/],
      ['--rate fast', 2, /must be requests a second .*, got "fast"/],
      ['--rate 0', 2, /above 0 and up to 1000000, or such as 90\/m, .*, got "0"; `--help`/],
      ['--duration 5', 2, /"5" has no unit/],
      ['--warm-up soon', 2, /is not a duration/],
      ['--threshold p99', 2, /a threshold must be an expression such as .*, got "p99"/],
      ['--workers 300', 2, /300/],
      ['--workers 8 --connections 4', 2, /8 workers have 4/],
      ['--as-fast-as 4 --connections 4', 2, /--as-fast-as can't be combined with --connections/],
      ['--out report.pdf', 2, /--out must end in .*\.html.*, got "report\.pdf"/],
      ['--out /nowhere/report.html', 1, /can't be written/],
      ['--http 3', 2, /must be one of 1\.1, 2, got "3"/],
      ['--ops nowhere', 2, /--ops must be an address .*, got "nowhere"/],
      [`--ops ${target.url}`, 1, /--ops must be the ops listener of a gateway, but .*\/metrics answered 200/],
    ),
    [`saturate ${traffic}`, 2, /unknown command 'saturate'/],
    ...of(
      `replay ${traffic} --target ${target.url} --until-slower`,
      ['--threshold rate>90', 2, /--threshold rate>90 can't be combined with --until-slower/],
      ['--duration 2s', 2, /--warm-up must be shorter than --duration \(2s\), got 2s/],
      ['--speed 2', 2, /--speed and --until-slower can't be combined/],
      ['--bodies x', 2, /--bodies can't be combined with several rates/],
      ['--rate 10,fast', 2, /, got "10,fast"/],
    ),
  )
  const [ofPosts] = await runCommands([['replay', posts, '--target', target.url]])
  t.match(ofPosts, { code: 2, stdout: '', stderr: /^abohawa: .* only POST requests; --any-method/m })
  t.equal(target.received.filter(({ path }) => path.startsWith('/api')).length, 0)
})

t.test('traffic', async t => {
  const rates = /--rate must be requests a second above 0 and up to 1000000, or such as 90\/m/
  const storm =
    /--storm must be a place type\/id, a local time and a duration, as in district\/2015@18:00\/2h/
  const mix =
    /--mix must be shares of weather, forecast, coords, weather_places, forecast_places, locations, location, as in weather=70/
  const within = /--storm must start within the traffic, from 2026-11-16 00:00 to 2026-11-16 01:00/
  const share = /must be a share from 0 to 1, such as 0\.1 or 10%, got "30"/
  const before = readFileSync(traffic, 'utf8')
  await check(
    t,
    ['traffic import', 2, /missing required argument 'files'/],
    [`traffic stats ${folder}`, 1, /can't be read: it is a directory/],
    ['traffic import - -', 1, /standard input \(-\) can be given only once/],
    [`traffic import ${at('no\u001b')}`, 1, /no\\u001b can't be read: there is no such file/],
    [`traffic import ${at('hello')}`, 1, /hello: unknown format, the file begins with "hello/],
    ['traffic import x --as keys --tier gold', 2, tiers],
    [`traffic stats ${traffic} --by user`, 2, /must be one of cell, place, path, key, got "user"/],
    ...of(
      `traffic import ${traffic}`,
      [
        `--out ${traffic} --force`,
        1,
        /--out is ".*traffic\.ndjson", which the command reads; choose another file/,
      ],
      [`--out ${at('hello')}`, 1, /hello", which exists; --force replaces it/],
      [`--force --out ${at('folder')}`, 1, /folder", which is not a regular file/],
      [`--out ${at('nowhere/b')}`, 1, /b", which can't be written: ".*nowhere" is a folder that is missing/],
      ['--head 1 --endpoint locations', 1, /none of the [\d,]+ requests in .*traffic\.ndjson is selected/],
      ['--format pcap', 2, /must be .*access-log, ndjson, har.*, got "pcap"/],
      ['--sample 0', 2, /must be a share above 0 and up to 1.*, got "0"/],
      ['--longest-gap 5', 2, /'5' is invalid.*has no unit/],
      ['--window 0', 2, wholeNumber('1')],
      ['--from noon', 2, /must be an instant such as .*, got "noon"/],
      ['--from 2h --to 1h', 2, /--from must be before --to/],
      ['--endpoint rain', 2, /must be .*weather, forecast.*, got "rain"/],
      ['--cell Dhaka', 2, /--cell must be a cell such as 23\.7,90\.4 .*, got "Dhaka"/],
      ['--as gor', 2, /must be one of requests, keys.*, got "gor"/],
      ['--start 1h', 2, /must be an instant .*, got "1h"/],
    ),
    ['traffic generate --config /nowhere.yaml', 1, /\/nowhere\.yaml/],
    ...of(
      `traffic generate --out ${at('none.ndjson')}`,
      ...['0', '1e3', '2000001', '5/w'].map((rate): [string, number, RegExp] => [`--rate ${rate}`, 2, rates]),
      ['--duration 10', 2, noUnit],
      ['--duration 400d', 2, /must be 1ms to 366d, got "400d"/],
      ['--rate 100000 --duration 10d', 2, /86,400,000,000 requests, but the maximum is 1,000,000,000/],
      ['--seed 1.5', 2, wholeNumber('0 to 4294967295')],
      ['--shape night', 2, /must be one of day, flat, ramp, spike, storm, got "night"/],
      ['--start today', 2, /--start must be a day such as 2026-11-16, or an instant .*, got "today"/],
      ['--start 2026-02-30', 2, /--start must .*"2026-02-30"/],
      ['--start 2026-11-16T08:00', 2, /--start must .*"2026-11-16T08:00"/],
      ['--storm dhaka', 2, storm],
      ['--storm district/2015@24:00/2h', 2, storm],
      ['--storm district/2015@18:00/2', 2, /"2" has no unit/],
      ['--storm district/99@18:00/2h', 2, /but the catalogue has no district "99"/],
      ['--storm district/2015@18:00/2h --duration 1h', 2, within],
      ['--storm-factor 0.5', 2, /must be a number from 1 to 1000, got "0\.5"/],
      ['--mix weather=70,radar=30', 2, mix],
      ['--mix weather=0', 2, /at least one share above 0/],
      ['--alpha 9', 2, /must be a number from 0 to 5, got "9"/],
      ['--keys 0', 2, wholeNumber('1 to 100000')],
      ['--english 30', 2, share],
      ['--conditional 30', 2, share],
      ['--compressed 30', 2, share],
      ['--bad 30', 2, share],
      ['--arrivals closed', 2, /must be one of poisson, even, got "closed"/],
    ),
  )
  t.equal(readFileSync(traffic, 'utf8'), before)
  t.notOk(existsSync(at('none.ndjson')))
})

t.test('a target that is no gateway is named', async t => {
  const garbage = await startTarget(t, () => ok('hello').replace('200 OK', '404 Not Found'))
  // Without waiting for a line, as servers of HTTP do with what is none.
  const plain = createServer(socket =>
    socket.on('error', () => {}).once('data', () => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')),
  )
  const secure = `https://127.0.0.1:${await listenOn(t, plain)}`
  const noTls = 'it does not speak TLS'
  await check(
    t,
    [`replay ${traffic} --target ${secure}`, 1, new RegExp(`reached: ${noTls}; use http:`)],
    [`replay ${traffic} --target ${garbage.url} --http 2`, 1, /does not speak HTTP\/2; use --http 1\.1/],
    [
      `replay ${traffic} --target ${garbage.url} --ops ${secure}`,
      1,
      new RegExp(`no gateway answered at .*: ${noTls}`),
    ],
  )
  const silent = await startTarget(t, (_, socket) => void socket.destroy())
  const [wrong, none] = await runCommands([
    ['replay', traffic, '--target', garbage.url],
    ['replay', traffic, '--target', silent.url],
  ])
  t.match(wrong?.stderr, /None of 3 responses was 2xx or 304: check that --target/)
  t.match(wrong?.stdout, /rate +as recorded, /)
  t.match(none?.stderr, /No request was answered/)
  t.match(none?.stdout, /^all +3 +no response /m)
  t.notMatch(none?.stdout, /0 ms, p90/)
})

t.test('traffic without key ids says so, and not that the target is wrong', async t => {
  const [log, keys] = [at('keyless.log'), at('some-keys.csv')]
  writeFileSync(log, '203.0.113.7 - - [21/Nov/2026:12:00:01 +0600] "GET /a HTTP/1.1" 200 5000\n')
  writeFileSync(keys, 'id,key\nkey_1,svc_live_1\n')
  const target = await startTarget(t, () => ok('{}').replace('200 OK', '401 Unauthorized'))
  const replay = `replay ${log} --target ${target.url}`
  const nobody = /the traffic has no key ids, so --reuse-keys has no effect; --key FILE sends one key with/
  await check(t, [`${replay} --keys ${keys} --reuse-keys`, 2, nobody])
  const { stderr } = await runCommand(replay.split(' '))
  t.match(stderr, /1 of 1 responses were 401: the traffic has no key ids; --key FILE sends one key/)
})

const withoutFull = !existsSync('/dev/full') && 'needs /dev/full'
t.test('standard output on a full disk is one sentence', { skip: withoutFull }, async t => {
  const full = openSync('/dev/full', 'w')
  t.teardown(() => closeSync(full))
  const stdio: StdioOptions = ['ignore', full, 'pipe']
  const options = { stdio, env: cleanEnv(), encoding: 'utf8' } as const
  const { status, stderr } = spawnSync(product, ['traffic', 'stats', traffic], options)
  t.equal(status, 1)
  t.match(stderr, /^abohawa: standard output can't be written: ENOSPC[^\n]*\n$/)
})

t.test('help names a command as --help behind it does', async t => {
  const [all, named, behind] = await runCommands([
    ['help'],
    ['help', 'keys', 'create'],
    ['keys', 'create', '--help'],
  ])
  t.match(all, { code: 0, stdout: 'run the gateway' })
  t.match(named, { code: 0, stdout: /--external-id/ })
  t.strictSame(named, behind)
})

t.test('help in front of a command is that of all, and --version is also known behind one', async t => {
  const lines = [
    ['--help'],
    ['--help', 'status'],
    ['--help', 'budget'],
    ['--version'],
    ['serve', '--version'],
  ]
  const [plain, first, second, version, behind] = await runCommands(lines)
  t.match(plain, { code: 0, stdout: 'run the gateway' })
  t.strictSame([first, second, behind], [plain, plain, version])
})
