// The speed of the gateway against its bars: `npm run bench`. Every claim about speed in this project comes from it.

import { writePage } from './report.ts'
import { runBench } from './run-rows.ts'
import { hits } from './speed/hits.ts'
import { refresh } from './speed/refresh.ts'
import { resident } from './speed/resident.ts'
import { start } from './speed/start.ts'
import { two } from './speed/two.ts'

await runBench({
  name: 'bench',
  summary: 'Measures the speed of the gateway against its bars in some 10 minutes',
  page: 'docs/performance.md',
  needs: 'Needs Linux; what is compared over redis-server, nginx with Lua and wrk needs these on the path.',
  rows: [hits, two, resident, refresh, start],
  settings: {
    rounds: { help: 'rounds of every row in turn', usual: 7 },
    seconds: { help: 'of load on a row in each round', usual: 4 },
  },
  write: ran =>
    writePage(
      'bench',
      {
        file: 'performance.md',
        title: 'Performance',
        intro: 'How fast cached weather is answered, beside others and against its bars.',
        howToRead: `The load has no pauses, so answers a second are what a server gives at its limit and p99 is that at the limit; at
a moderate load times are far shorter. Figures of a row are comparable with those of other rows of the same run, not with
another machine's or another day's; gaps under 10 % mean nothing. A bar is held against the best round, because what other
work takes away is never in a server's favour; the median stands beside it. The microseconds of a hit are listed
in [the profile of a hit](hit-path-profile.md).`,
        doesNotProve: [
          `Nothing about a network: everything runs on one machine over its loopback, without TLS, and HTTP/1.1 connections are few
  and kept. New connections, TLS, slow lines and thousands of idle callers cost more.`,
          'Nothing about misses: all weather is cached. What the provider adds is its own; capacity is in [capacity](capacity.md).',
          `Nothing about your traffic: one place requested again and again is the easiest case, which is why the row with requests
  for all places in turn stands beside it; 1,000 keys in turn are not a million.`,
          `Nothing about Redis at its limits: one server without persistence, replicas or neighbours, on the core of the load. Where
  that core was the limit, servers that use Redis less look better than on a larger machine.`,
          `The compositions are what we think most would write, not what their authors could do at best; nginx is one worker with
  one script of ours. They prove how the same work compares, not what these programs are capable of.`,
          'Minutes, not weeks: no fragmentation, no full disks, no log rotation.',
        ],
      },
      ran,
    ),
})
