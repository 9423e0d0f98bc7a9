// Without it a gateway that was scraped at a bad moment could have no metrics until it is restarted.

import { join } from 'node:path'
import t from 'tap'
import { outputOf, withoutPrlimit } from '../support/process.ts'
import type { Scrapes } from './scrape-without-descriptors.ts'

t.test(
  'a scrape that finds no descriptor fails, and the next one does not',
  { skip: withoutPrlimit },
  async t => {
    const script = join(import.meta.dirname, 'scrape-without-descriptors.ts')
    const words = ['prlimit', '--nofile=80', process.execPath, script]
    const [first, second]: Scrapes = JSON.parse(await outputOf(t, words))
    t.not(first, 'whole', first)
    t.equal(second, 'whole')
  },
)
