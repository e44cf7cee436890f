import assert from 'node:assert/strict';
import { test } from 'node:test';

import { parseLine } from '../src/index.js';

test('fields are split at commas', () => {
  assert.deepEqual(parseLine('a,b,,c'), ['a', 'b', '', 'c']);
  assert.deepEqual(parseLine(''), ['']);
});
