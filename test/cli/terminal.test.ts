// Without this, a table row could break into lines, or the time left could be nonsense.

import t from 'tap'
import { tableOf } from '../../src/command-line/tables.ts'
import { leftText } from '../../tools/load/cli/progress.ts'

t.test('a cell has at most 500 characters and a sign of more, and its row stays one line', async t => {
  const [, short = '', long = ''] = tableOf(['name'], [['x'.repeat(500)], ['x'.repeat(501)]]).split('\n')
  t.equal(short, 'x'.repeat(500))
  t.equal(long, `${'x'.repeat(500)}…`)
  t.equal(tableOf(['name'], [['a\nb\u001b[31m']]).split('\n').length, 2)
})

t.test('columns are aligned in the cells of a terminal, whatever the script', async t => {
  const rows = [
    ['চট্টগ্রাম', '1'],
    ['東京', '20'],
    ['Dhaka', '3'],
  ]
  t.equal(
    tableOf(['place', 'count'], rows, [1]),
    ['place    count', 'চট্টগ্রাম      1', '東京        20', 'Dhaka        3'].join('\n'),
  )
})

t.test('what is left is told when enough is done to tell', async t => {
  for (const [share, seconds, text] of [
    [0, 3, ''],
    [1 / 2_640, 3, ''],
    [0.05, 3, ''],
    [0.05, 30, ', 9 min 30 s left'],
    [0.1, 2, ', 18 s left'],
    [0.5, 0.5, ', 1 s left'],
    [1.1, 20, ', 0 s left'],
  ] as const)
    t.equal(leftText(share, seconds), text, `${share} after ${seconds} s`)
})
