// The speed of the gateway against its bars: `npm run bench`. Every claim about speed in this project comes from it.

import { writePage } from './report.ts'
import { runBench } from './run-rows.ts'
import { hits } from './speed/hits.ts'
import { mix } from './speed/mix.ts'
import { refresh } from './speed/refresh.ts'
import { resident } from './speed/resident.ts'
import { start } from './speed/start.ts'
import { tails } from './speed/tails.ts'
import { two } from './speed/two.ts'

await runBench({
  name: 'bench',
  summary: 'Measures the speed of the gateway against its bars in some 25 minutes',
  page: 'docs/performance.md',
  needs: 'Needs Linux; what is compared over redis-server, nginx with Lua and wrk needs these on the path.',
  rows: [mix, tails, hits, two, resident, refresh, start],
  settings: {
    rounds: { help: 'rounds of every row in turn', usual: 5 },
    seconds: { help: 'of load on a row in each round', usual: 3 },
    open: { help: 'seconds of each open loop', usual: 20 },
    minutes: { help: 'of the mix for its memory', usual: 5 },
  },
  write: ran =>
    writePage(
      'bench',
      {
        file: 'performance.md',
        title: 'Performance',
        intro: 'How fast traffic as it comes is answered, beside others and against its bars.',
        howToRead: `The headline is the row \`mix\`: many places and keys by Zipf, all endpoints, both languages, gzip and br, requests with
an ETag, the access log on, Redis. What one URL or one key costs stands beside it, and in \`hits\` with a body of 10 kB.
Your own traffic can be recorded and sent with \`abohawa replay\` ([load testing](load-testing.md)).

The load has no pauses, so answers a second are what a server gives at its limit and p99 is that at the limit; the
open loop has the times at half of it. Figures of a row are comparable with those of other rows of the same run, not with
another machine's or another day's; gaps under 10 % mean nothing. A bar is held against the best round, because what other
work takes away is never in a server's favour; the median stands beside it. The microseconds of a hit are listed
in [the profile of a hit](hit-path-profile.md).`,
        doesNotProve: [
          `Nothing about a network: everything runs on one machine over its loopback, without TLS, and HTTP/1.1 connections are few
  and kept. New connections, TLS, slow lines and thousands of idle callers cost more.`,
          'Nothing about misses: all weather is cached. What the provider adds is its own; capacity is in [capacity](capacity.md).',
          `Nothing about your traffic: the mix is drawn from a seed, not recorded, and repeats after 20,000 requests; 1,000 keys are
  not a million. An open loop at half of a capacity says nothing about the other half.`,
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
