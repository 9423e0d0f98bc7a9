// What a newcomer gets wrong with `replay`, `rehearse`, `whatif` and `traffic import`: the same mistake has the same exit code in
// each, one sentence, and comes before the work. A target that is no gateway is named as such.

import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, openSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { lineOf } from '../../src/load/traffic/traffic-request.ts'
import { ok, startTarget } from '../load/replay/scripted-target.ts'
import { arriving } from '../load/replay/send-some.ts'
import { runCommands } from '../support/printed.ts'
import { cleanEnv, type Ended, product } from '../support/process.ts'

// Longer than a quoted value is shown: what is wrong stands at the end of a path.
const name = 'a-folder-as-long-as-those-of-machines-that-build-and-test'
const outer = t.testdir({
  [name]: { empty: '', 'ids.csv': 'subscriber,tier,external_id,limit\nA,free,key-1,1\n' },
})
const folder = join(outer, name)
const at = (name: string): string => join(folder, name)
const traffic = at('traffic.ndjson')
writeFileSync(
  traffic,
  arriving([0, 1, 2])
    .map(each => `${lineOf(each)}\n`)
    .join(''),
)
const keyed = at('keyed.ndjson')
writeFileSync(
  keyed,
  arriving([0], { key: 'key-1' })
    .map(each => `${lineOf(each)}\n`)
    .join(''),
)

type Mistake = readonly [args: readonly string[], code: number, sentence: RegExp]

const check = async (t: Test, mistakes: readonly Mistake[]): Promise<void> => {
  const ended = await runCommands(mistakes.map(([args]) => args))
  for (const [i, [args, code, sentence]] of mistakes.entries()) {
    const { code: given, stdout, stderr } = ended[i] as Ended
    t.match({ code: given, stdout }, { code, stdout: '' }, args.join(' '))
    t.match(stderr, sentence)
    t.match(stderr, /^abohawa: [^\n]*\n$/, 'one line')
    t.notMatch(stderr, /\.; `--help/)
  }
}

t.test('an option with one value is given once', async t => {
  const twice = (option: string) => new RegExp(`${option} is given more than once; allowed: once`)
  const pair = (option: string, ...values: readonly string[]) => values.flatMap(value => [option, value])
  const to = ['--target', 'http://127.0.0.1:1']
  await check(t, [
    [['whatif', traffic, ...pair('--out', at('a.html'), at('b.html'))], 2, twice('--out')],
    [['rehearse', traffic, ...pair('--provider-limits', 'none', 'free')], 2, twice('--provider-limits')],
    [['replay', 'report', traffic, ...pair('--out', at('a.html'), at('a.html'))], 2, twice('--out')],
    [['replay', traffic, ...to, ...pair('--rate', '5', '50')], 2, twice('--rate')],
    [['traffic', 'import', traffic, ...pair('--out', at('a.ndjson'), at('b.ndjson'))], 2, twice('--out')],
    [['traffic', 'generate', ...pair('--seed', '1', '2')], 2, twice('--seed')],
    [['keys', 'create', 'A', ...pair('--tier', 'free', 'standard')], 2, twice('--tier')],
    [['status', ...pair('--gateway', 'http://127.0.0.1:1', 'http://127.0.0.1:2')], 2, twice('--gateway')],
    // Those that collect are not meant.
    [['replay', traffic, ...to, ...pair('--threshold', 'p99<1s', 'p50<1s')], 1, /can't be reached/],
    [['whatif', traffic, ...pair('--case', 'banana', 'cache.freshFor=1h')], 2, /--case is "banana"/],
  ])
  for (const name of ['a.html', 'b.html', 'a.ndjson']) t.notOk(existsSync(at(name)), name)
})

t.test('a mistake has one exit code, whatever the command', async t => {
  const to = ['--target', 'http://127.0.0.1:1']
  const both = (args: readonly string[], code: number, sentence: RegExp): Mistake[] =>
    ['rehearse', 'whatif'].map(name => [[name, ...args], code, sentence])
  await check(t, [
    ...both([traffic, '--set', 'cache.freshFoo=1h'], 2, /did you mean cache\.freshFor\?/),
    ...both([traffic, '--set', 'cache.freshFor=banana'], 2, /must be a duration/),
    ...both([traffic, '--case', 'banana'], 2, /--case is "banana"/),
    ...both(
      [traffic, '--set', 'server.port=1,2'],
      2,
      /server\.port is the same for every setting that is tried/,
    ),
    ...both([traffic, '--out', at('x.txt')], 2, /--out is ".*x\.txt"; allowed: a file that ends in \.html/),
    ...both(
      [traffic, '--out', at('no/x.html')],
      1,
      /x\.html" can't be written: ".*no" is a folder that is missing/,
    ),
    ...both([traffic, '--out', at('empty/x.html')], 1, /can't be written: ".*empty" is no folder/),
    ...both([at('empty')], 1, /no requests/),
    [['replay', at('empty'), ...to], 1, /there are no requests in .*empty/],
    [['replay', 'report', traffic, traffic, '--out', at('x.txt')], 2, /--out is ".*x\.txt"; allowed: /],
    [['replay', 'report', traffic, '--out', at('no/x.html')], 1, /is a folder that is missing/],
    [['replay', traffic, '--target', 'localhost'], 2, /the target is "localhost"; allowed: http/],
    [['replay', traffic, '--target', `${to[1]}/api/v1`], 2, /allowed: without \/api\/v1/],
    [['replay', traffic, ...to, '--warm-up', 'soon'], 2, /is not a duration/],
    [
      ['replay', traffic, ...to, '--rate', '0'],
      2,
      /above 0 and up to 1000000, or such as 90\/m, .* `--help`/,
    ],
    [['replay', traffic, ...to, '--threshold', 'hits>900%'], 2, /"hits>900%" is a share of more than 100 %/],
    [
      ['replay', keyed, ...to, '--keys', at('ids.csv')],
      1,
      /has ids and no keys; allowed: what `abohawa keys create/,
    ],
    [
      ['traffic', 'import', traffic, '--cell', 'Dhaka'],
      2,
      /--cell is "Dhaka"; allowed: a cell such as 23\.7,90\.4/,
    ],
    [['traffic', 'import', traffic, '--from', '2h', '--to', '1h'], 2, /--from is not before --to/],
  ])
  t.notOk(existsSync(at('x.txt')))
})

t.test('a target that is no gateway is named', async t => {
  const garbage = await startTarget(t, () => ok('hello').replace('200 OK', '404 Not Found'))
  // Without waiting for a line, as servers of HTTP do with what is none.
  const plain = createServer(socket =>
    socket.on('error', () => {}).once('data', () => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')),
  )
  await once(plain.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => plain.close())
  const secure = `https://127.0.0.1:${(plain.address() as AddressInfo).port}`
  await check(t, [
    [
      ['replay', traffic, '--target', secure],
      1,
      /can't be reached: it does not speak TLS; allowed for it: http:/,
    ],
    [['replay', traffic, '--target', garbage.url, '--http', '2'], 1, /has no HTTP\/2; allowed: --http 1\.1/],
  ])
  await check(t, [
    [
      ['replay', traffic, '--target', garbage.url, '--ops', secure],
      1,
      /where no gateway answers: it does not speak TLS/,
    ],
  ])
  const silent = await startTarget(t, (_, socket) => void socket.destroy())
  const [wrong, none] = await runCommands([
    ['replay', traffic, '--target', garbage.url],
    ['replay', traffic, '--target', silent.url],
  ])
  t.match(wrong?.stderr, /None of 3 answers was 2xx or 304: check whether --target/)
  t.match(wrong?.stdout, /rate +as recorded, /)
  t.match(none?.stderr, /No request had an answer/)
  t.match(none?.stdout, /latency +no answer\n/)
  t.notMatch(none?.stdout, /0 ms, p90/)
})

t.test('standard output on a full disk is one sentence', { skip: !existsSync('/dev/full') }, async t => {
  const full = openSync('/dev/full', 'w')
  t.teardown(() => closeSync(full))
  const { status, stderr } = spawnSync(product, ['traffic', 'stats', traffic], {
    stdio: ['ignore', full, 'pipe'],
    env: cleanEnv(),
    encoding: 'utf8',
  })
  t.match(
    { status, stderr },
    { status: 1, stderr: /^abohawa: standard output can't be written: ENOSPC[^\n]*\n$/ },
  )
})

t.test('the help in front of a command is that of all commands, whichever it is', async t => {
  const [plain, ...others] = await runCommands([['--help'], ['--help', 'status'], ['--help', 'budget']])
  t.match(plain, { code: 0, stdout: 'run the gateway' })
  for (const other of others) t.match(other, { code: 0, stdout: plain?.stdout ?? '?' })
})

t.test('--version is also known behind a command', async t => {
  const [plain, behind] = await runCommands([['--version'], ['serve', '--version']])
  t.match(behind, { code: 0, stdout: plain?.stdout ?? '?' })
})
