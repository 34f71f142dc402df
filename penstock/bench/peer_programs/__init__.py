"""Flows of other libraries, for `penstock bench peers`.

They run in environments of their own, in which neither Penstock nor what it needs is installed: these modules
import each other, the standard library and the library that they are for, nothing else.
"""
