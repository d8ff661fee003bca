mod brute_force;
mod cases;
