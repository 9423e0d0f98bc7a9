// Two processes on one port beside one: what an answer of the mix costs in processor time, of both and of Redis. All run on the
// measured core, as the load needs the other: what is compared is what they lose by sharing keys, counts and weather.

import { freePort } from '../../test/support/listening.ts'
import { measureInRounds, resultOf } from '../rounds.ts'
import type { Row } from '../row.ts'
import { ours, setUp } from './mix.ts'

// Each process gets half of the load, and its code is fast only after tens of thousands of requests.
const warm = 10

export const processes: Row = {
  id: 'processes',
  what: 'two processes on one port, beside one',
  run: async (scope, options, progress) => {
    const { world, mix } = await setUp(scope)
    const env = { ABOHAWA_SERVER__PORT: `${await freePort()}` }
    const two = { id: 'two', name: 'Abohawa, Redis, log, two processes', processes: 2, env }
    const subjects = [ours(world, mix, 'one:'), ours(world, mix, 'two:', two)]
    const measured = await measureInRounds(world, subjects, { ...options, warm }, progress)
    return resultOf(measured, {
      'CPU of two processes with Redis, vs one': ['two', 'abohawa', 'both', '≤', 1.05],
    })
  },
}
