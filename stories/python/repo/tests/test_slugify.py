"""Slugs as they stand in addresses."""

import unittest

from slugs import slugify


class Slugify(unittest.TestCase):
    def test_words_are_joined_by_hyphens(self):
        self.assertEqual(slugify("Hello,  World!"), "hello-world")

    def test_nothing_is_left_of_nothing(self):
        self.assertEqual(slugify(" -- "), "")


if __name__ == "__main__":
    unittest.main()
