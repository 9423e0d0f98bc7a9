// Streams of events over real sockets: few at once, all told the same, changes of cells alone, and readers that do not keep up
// miss events and are dropped.

import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { createEventStreams, type EventStreamsOptions } from '../../../src/operate/listener/event-streams.ts'
import { openSocket } from '../../support/raw-http.ts'
import { until } from '../../support/until.ts'

type Cell = {
  id: string
  state: 'fresh' | 'stale' | 'absent' | 'failed'
  ageSeconds: number | null
  demand: number
}

const setUp = async (t: Test, options: Partial<EventStreamsOptions> = {}) => {
  const state = {
    isDraining: false,
    fails: false,
    padding: '',
    asked: 0,
    cells: [
      { id: 'a', state: 'fresh', ageSeconds: 1, demand: 1 },
      { id: 'b', state: 'absent', ageSeconds: null, demand: 0 },
    ] as Cell[],
  }
  const streams = createEventStreams(
    {
      live: async () => {
        state.asked += 1
        if (state.fails) throw new Error('not now')
        return { number: state.asked, padding: state.padding }
      },
      cells: () => ({ cells: state.cells }),
      isDraining: () => state.isDraining,
    },
    { most: () => 3, statusEveryMs: 10, ...options },
  )
  const server = createServer((_request, response) => {
    if (!streams.add(response)) response.writeHead(503).end()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  const open = () => {
    const socket = openSocket(`http://127.0.0.1:${port}`)
    t.teardown(() => socket.destroy())
    let text = ''
    socket.setEncoding('utf8').on('data', part => {
      text += part
    })
    socket.write('GET /events HTTP/1.1\r\nhost: x\r\n\r\n')
    const events = (name: string): { number: number; cells: Cell[] }[] =>
      [...text.matchAll(new RegExp(`^event: ${name}\\ndata: (.*)\\n\\n`, 'gm'))].map(([, data = '']) =>
        JSON.parse(data),
      )
    return { socket, text: () => text, events }
  }
  return { state, open }
}

t.test('all streams are told the same, and nothing is worked out while there is none', async t => {
  const { state, open } = await setUp(t)
  const [one, two] = [open(), open()]
  await until('both have events', () => one.events('status').length > 5 && two.events('status').length > 5)
  t.match(
    one.text(),
    /^HTTP\/1\.1 200 .*content-type: text\/event-stream.*\r\nretry: 3000\n\n.*^: alive\n\n/ms,
  )
  const numbers = one.events('status').map(({ number }) => number)
  const wanted = Array.from(numbers, (_, i) => (numbers[0] ?? 0) + i)
  t.strictSame(numbers, wanted, 'none is missing')
  one.socket.destroy()
  two.socket.destroy()
  let before = -1
  const isStill = () => {
    const isSame = state.asked === before
    before = state.asked
    return isSame
  }
  await until('nothing is asked any more', isStill, undefined, 50)
})

t.test('the first event of cells has all of them, later ones those that changed', async t => {
  const { state, open } = await setUp(t)
  const { events } = open()
  await until('there are cells', () => events('cells').length > 0)
  t.strictSame(events('cells')[0]?.cells, state.cells)
  const ticks = state.asked
  state.cells = state.cells.map(cell => ({
    ...cell,
    demand: cell.demand * 0.99,
    ageSeconds: cell.ageSeconds && 9,
  }))
  await until('some ticks have passed', () => state.asked > ticks + 6)
  t.equal(events('cells').length, 1, 'age and decay are no change')
  state.cells = [
    { id: 'a', state: 'fresh', ageSeconds: 0, demand: 0.99 },
    { id: 'b', state: 'fresh', ageSeconds: 0, demand: 1 },
  ]
  await until('the changes are told', () => events('cells').length === 2)
  t.match(events('cells')[1]?.cells, [{ id: 'a' }, { id: 'b' }], 'one reloaded, one loaded')
  state.cells = state.cells.map(cell => (cell.id === 'b' ? { ...cell, state: 'stale' } : cell))
  await until('the next change is told', () => events('cells').length === 3)
  t.match(events('cells')[2]?.cells, [{ id: 'b', state: 'stale' }])
  t.equal(events('cells')[2]?.cells.length, 1)
  const late = open()
  await until('a later stream has cells', () => late.events('cells').length > 0)
  t.equal(late.events('cells')[0]?.cells.length, 2, 'it has all')
  t.equal(events('cells').length, 3, 'and nobody else is told again')
})

t.test('so many streams and no more, until one ends', async t => {
  const { open } = await setUp(t)
  const three = [open(), open(), open()]
  await until('all have begun', () => three.every(({ text }) => text().includes('retry')))
  const fourth = open()
  await until('it is refused', () => fourth.text().startsWith('HTTP/1.1 503'))
  three[0]?.socket.destroy()
  await until('there is room again', async () => {
    const next = open()
    await until('it is answered', () => next.text() !== '')
    return next.text().startsWith('HTTP/1.1 200')
  })
})

t.test('a failure is passed over, and draining ends the streams after a last event', async t => {
  const { state, open } = await setUp(t)
  const { socket, events } = open()
  await until('it has begun', () => events('status').length > 0)
  state.fails = true
  const asked = state.asked
  await until('it failed some times', () => state.asked > asked + 3)
  state.fails = false
  const seen = events('status').length
  await until('it goes on', () => events('status').length > seen)
  const ended = once(socket, 'end')
  state.isDraining = true
  await ended
  t.equal(events('status').at(-1)?.number, state.asked)
})

t.test('a reader that stalls costs a bounded buffer, is dropped, and holds up nobody', async t => {
  const { state, open } = await setUp(t, { stalledForMs: 300 })
  state.padding = 'x'.repeat(200_000)
  const stalled = open()
  const reading = open()
  stalled.socket.pause()
  const closed = once(stalled.socket, 'close')
  await until('the other one reads on', () => reading.events('status').length > 60)
  stalled.socket.resume()
  await closed
  const got = stalled.text().length
  t.ok(got < 8_000_000, `${got} bytes were sent or buffered`)
  t.ok(state.asked * 200_000 > 12_000_000)
  const { length } = reading.events('status')
  await until('and on', () => reading.events('status').length > length + 5)
})

t.test('a reader that was behind gets all cells once it reads again', async t => {
  const { state, open } = await setUp(t, { stalledForMs: 60_000 })
  const { socket, events } = open()
  await until('it has the cells', () => events('cells').length > 0)
  state.padding = 'x'.repeat(1_000_000)
  socket.pause()
  let asked = state.asked
  await until('it is far behind', () => state.asked > asked + 30)
  state.cells = state.cells.map(cell => ({ ...cell, state: 'stale' }))
  asked = state.asked
  await until('the change has been told', () => state.asked > asked + 4)
  state.padding = ''
  socket.resume()
  const areStale = () =>
    events('cells')
      .at(-1)
      ?.cells.every(cell => cell.state === 'stale')
  await until('it knows of the change', areStale)
})
