"""Stub."""
import numpy as np
def side(walk):
    s=walk.boxes[0].states
    f=np.full((s,s),np.inf); np.fill_diagonal(f,1); return f
