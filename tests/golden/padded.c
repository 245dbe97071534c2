// e_3_6: in0 out0
void e_3_6(float* restrict data0, float* restrict data1) {
  for (int ridx0 = 0; ridx0 < 3; ridx0++) {
    for (int ridx1 = 0; ridx1 < 6; ridx1++) {
      _Bool alu1 = (((0<ridx0)&(1<ridx1))&(ridx1<5));
      float val2 = (alu1?data0[(((ridx0*3)+-3)+(ridx1+-2))]:0.0f);
      data1[((ridx0*6)+ridx1)] = (alu1?(val2*2.0f):0.0f);
    }
  }
}
