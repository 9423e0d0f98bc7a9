// The columns of a trace: in the order of arrival, whatever order the requests come in.

import t from 'tap'
import type { TrafficRequest } from '../../../src/load/traffic/traffic-request.ts'
import { traceOf } from './simulate-on.ts'

const request = (at: number, place: string, key: string): TrafficRequest => ({
  at,
  method: 'GET',
  path: `/api/v1/weather/district/${place}`,
  key,
  accepts: place,
})

t.test('requests far out of place are put in their place, with all that belongs to them', async t => {
  const requests = [request(3_000, 'c', 'k3'), request(1_000, 'a', 'k1'), request(2_000, 'b', 'k2')]
  const again = [...requests, request(1_000, 'd', 'k4')]
  const { at, path, encoding, key, paths, encodings, keys } = await traceOf(again)
  t.strictSame([...at], [1_000, 1_000, 2_000, 3_000])
  t.strictSame(
    [...path].map(number => paths[number]?.at(-1)),
    ['a', 'd', 'b', 'c'],
    'of one instant in the order of the file',
  )
  t.strictSame(
    [...encoding].map(number => encodings[number]),
    ['a', 'd', 'b', 'c'],
  )
  t.strictSame(
    [...key].map(number => keys[number]),
    ['k1', 'k4', 'k2', 'k3'],
  )
  t.ok(at.buffer instanceof SharedArrayBuffer)
})
